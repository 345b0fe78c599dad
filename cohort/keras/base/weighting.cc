#include "cohort/keras/base/weighting.h"

#include "cohort/core/error.h"

namespace cohort::internal {

void squeeze_last_of_larger(Tensor& a, Tensor& b) {
  if (a.dim() == b.dim() + 1 && a.size(-1) == 1) {
    a = a.squeeze(-1);
  } else if (b.dim() == a.dim() + 1 && b.size(-1) == 1) {
    b = b.squeeze(-1);
  }
}

Tensor with_rows_of(const Tensor& values, const Tensor& predictions) {
  const bool is_vector_of_column =
      values.defined() && values.dim() == 1 && predictions.dim() == 2 && predictions.size(1) == 1;
  return is_vector_of_column ? values.unsqueeze(1) : values;
}

bool has_no_rows(const Tensor& tensor) { return tensor.dim() > 0 && tensor.size(0) == 0; }

bool broadcasts_to(at::IntArrayRef shape, at::IntArrayRef target) {
  if (shape.size() > target.size()) return false;
  const size_t offset = target.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && shape[i] != target[offset + i]) return false;
  }
  return true;
}

Tensor broadcast_weights(const Tensor& weights, const Tensor& values, const char* what) {
  Tensor fitted = weights.to(values.device(), values.scalar_type());
  if (fitted.dim() == values.dim() + 1 && fitted.size(-1) == 1) {
    fitted = fitted.squeeze(-1);
  } else if (fitted.dim() > 0 && fitted.dim() + 1 == values.dim()) {
    fitted = fitted.unsqueeze(-1);
  }
  if (!broadcasts_to(fitted.sizes(), values.sizes())) {
    const bool one_number = values.dim() == 0;
    throw InvalidArgumentError(
        str(what, ": sample_weight of shape ", shape_str(weights.sizes()),
            " does not fit values of shape ", shape_str(values.sizes()),
            one_number ? "; a loss that gives one number for the batch cannot weigh rows (nor "
                         "classes): let it give "
                         "one for each row, as libtorch's do with .reduction(torch::kNone)"
                       : ""));
  }
  return fitted;
}

}  // namespace cohort::internal
