#include "cohort/distribute/step/nn.h"

#include "cohort/core/error.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/ops/small_sums.h"

namespace cohort {
namespace {

using internal::describe;
using internal::str;

int num_replicas(const char* function) {
  const internal::Replica* replica = internal::current_replica();
  if (replica == nullptr) {
    throw FailedPreconditionError(
        str("nn::", function,
            " was called in cross-replica context, where there is no replica's "
            "loss to scale; call it in the function that strategy.run runs"));
  }
  return replica->num_replicas_in_sync();
}

// A last dimension of 1 is dropped or added where the ranks differ by one, as in Keras.
Tensor fit_weights(const Tensor& weights, const Tensor& losses) {
  Tensor fitted = weights.to(losses.device(), losses.scalar_type());
  if (fitted.dim() == losses.dim() + 1 && fitted.size(-1) == 1) fitted = fitted.squeeze(-1);
  if (fitted.dim() > 0 && fitted.dim() + 1 == losses.dim()) fitted = fitted.unsqueeze(-1);
  bool fits = fitted.dim() == 0 || fitted.dim() == losses.dim();
  for (int64_t d = 0; fits && d < fitted.dim(); ++d) {
    fits = fitted.size(d) == 1 || fitted.size(d) == losses.size(d);
  }
  if (!fits) {
    throw InvalidArgumentError(str(
        "nn::compute_average_loss: sample_weight of shape ", internal::shape_str(weights.sizes()),
        " does not fit losses of shape ", internal::shape_str(losses.sizes())));
  }
  return fitted;
}

}  // namespace

namespace nn {

Tensor compute_average_loss(const Tensor& per_example_loss, const AverageLossOptions& options) {
  const int replicas = num_replicas("compute_average_loss");
  if (!per_example_loss.defined() || per_example_loss.dim() == 0) {
    throw InvalidArgumentError(
        str("nn::compute_average_loss takes one loss an example, of rank 1 or more, but got ",
            describe(per_example_loss), "; make the loss with Reduction::NONE"));
  }
  const DType dtype = per_example_loss.scalar_type();
  Tensor losses = at::isFloatingType(dtype) ? per_example_loss : per_example_loss.to(float32);
  if (options.sample_weight.defined()) losses = losses * fit_weights(options.sample_weight, losses);
  const int64_t batch_size = options.global_batch_size.value_or(replicas * losses.size(0));
  if (batch_size < 0) {
    throw InvalidArgumentError(
        str("nn::compute_average_loss: global_batch_size is ", batch_size, ", below 0"));
  }
  if (batch_size == 0) return (losses.sum() * 0).to(dtype);
  return internal::divided_sum(losses, batch_size).to(dtype);
}

Tensor scale_regularization_loss(const Tensor& loss) {
  return internal::divided_sum(loss, num_replicas("scale_regularization_loss"));
}

}  // namespace nn

Tensor add_n(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) throw InvalidArgumentError("add_n got no tensors");
  const Tensor& first = tensors[0];
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].sizes() != first.sizes() || tensors[i].scalar_type() != first.scalar_type()) {
      throw InvalidArgumentError(str("add_n: tensor 0 is ", describe(first), ", but tensor ", i,
                                     " is ", describe(tensors[i])));
    }
  }
  return internal::sum_of(tensors);
}

}  // namespace cohort
