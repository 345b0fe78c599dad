#include "cohort/keras/layers/batch_normalization.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/where.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/normalizing_layer.h"
#include "cohort/ops/batch_norm.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

template <class Fields, class Options>
void batch_normalization_fields(Fields& field, Options& options) {
  field.number("axis", options.axis);
  field("momentum", options.momentum);
  normalizing_fields(field, options);
  field("moving_mean_initializer", options.moving_mean_initializer);
  field("moving_variance_initializer", options.moving_variance_initializer);
  field.unless("synchronized", options.synchronized, false);
}

class BatchNormalizationImpl final : public NormalizingLayer<BatchNormalizationOptions>,
                                     public internal::DescribesOperation {
 public:
  explicit BatchNormalizationImpl(BatchNormalizationOptions options)
      : NormalizingLayer("BatchNormalization", std::move(options)) {
    if (!(options_.momentum >= 0 && options_.momentum <= 1)) {
      throw InvalidArgumentError(
          str("BatchNormalization: momentum is ", options_.momentum, "; it must lie in [0, 1]"));
    }
    set_input_spec({.min_rank = 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { batch_normalization_fields(field, options_); });
  }

  internal::LayerOperation operation(bool training) const override {
    if (options_.synchronized) return {.why_not = "it is synchronized over replicas"};
    if (options_.axis != -1) return {.why_not = "its axis is not the last one"};
    if (!options_.scale && !options_.center) return {.why_not = "it has no weights to train"};
    const bool by_batch = training && trainable();
    internal::LayerOperation operation{
        .operations = {internal::plan::Normalization{.epsilon = options_.epsilon,
                                                     .scale = options_.scale,
                                                     .center = options_.center,
                                                     .by_batch = by_batch}},
        .parameters = {&gamma_, &beta_},
        .depends_on_training = true};
    if (by_batch) {
      operation.receive = [this](at::IntArrayRef input, const Tensor& statistics) {
        move_unbiased(input, statistics[0], statistics[1]);
      };
    } else {
      operation.parameters.push_back(&moving_mean_);
      operation.parameters.push_back(&moving_variance_);
    }
    return operation;
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const auto rank = static_cast<int64_t>(input_shapes[0].size());
    axis_ = options_.axis < 0 ? options_.axis + rank : options_.axis;
    if (axis_ < 1 || axis_ >= rank) {
      throw InvalidArgumentError(str("layer '", name(), "': axis ", options_.axis,
                                     " is no axis of channels of an input of rank ", rank));
    }
    input_spec().rank = rank;
    const int64_t channels = input_shapes[0][static_cast<size_t>(axis_)];
    const auto statistic = [&](const char* weight, const initializers::Initializer& initializer) {
      return add_weight(weight, {channels},
                        {.initializer = initializer,
                         .trainable = false,
                         .dtype = dtype_of_weights(),
                         .synchronization = VariableSynchronization::ON_READ,
                         .aggregation = VariableAggregation::MEAN,
                         .autocast = false});
    };
    add_scale_and_offset({channels}, dtype_of_weights());
    moving_mean_ = statistic("moving_mean", options_.moving_mean_initializer);
    moving_variance_ = statistic("moving_variance", options_.moving_variance_initializer);
  }

  Tensor call(const Tensor& input, const CallOptions& options) override {
    const Tensor x = input.to(dtype_of_weights());
    if (x.size(axis_) != moving_mean_.shape()[0]) {
      throw InvalidArgumentError(str("layer '", name(), "' was built for ", moving_mean_.shape()[0],
                                     " channels, but got ", internal::describe(input)));
    }
    const bool by_batch = *options.training && trainable();
    // Keras's kernel for images knows no mask.
    const Tensor mask = by_batch && !is_of_images(x.sizes()) ? internal::mask_of(input) : Tensor();
    return internal::keep_mask(input, normalized(x, mask, by_batch).to(compute_dtype()));
  }

 private:
  // In which it computes: of 16 bits statistics would be worth nothing, in Keras neither.
  DType dtype_of_weights() const { return variable_dtype() == float64 ? float64 : float32; }

  static bool is_of_images(at::IntArrayRef x) { return x.size() == 4 || x.size() == 5; }

  // mask: what counts in mean and variance; undefined: all.
  Tensor normalized(const Tensor& x, const Tensor& mask, bool by_batch) {
    if (!by_batch) return normalize(x, kept_value(moving_mean_), kept_value(moving_variance_));
    return options_.synchronized || mask.defined() ? by_sums(x, mask) : by_own_batch(x);
  }

  // A gradient reads it later, and a call in training before that moves the average in place.
  static Tensor kept_value(const Variable& moving) {
    const Tensor value = moving.value();
    return at::GradMode::is_enabled() ? value.clone() : value;
  }

  // Gradients of gradients of libtorch's kernel need one.
  Tensor gamma_or_ones(const Tensor& like) const {
    if (gamma_ || !at::GradMode::is_enabled()) return gamma();
    return at::ones_like(like);
  }

  // libtorch's kernels take channels after the batch, and divide by zero where there is nothing.
  Tensor normalize(const Tensor& x, const Tensor& mean, const Tensor& variance) const {
    if (x.numel() == 0) return scaled(x);
    return std::get<0>(at::native_batch_norm(x.movedim(axis_, 1), gamma_or_ones(mean), beta(), mean,
                                             variance,
                                             /*training=*/false, /*momentum=*/0, options_.epsilon))
        .movedim(1, axis_);
  }

  Tensor by_own_batch(const Tensor& x) {
    if (x.numel() == 0) return normalize(x, moving_mean_.value(), moving_variance_.value());
    if (axis_ == x.dim() - 1 && internal::can_normalize_by_batch(x)) {
      const internal::NormalizedBatch batch =
          internal::normalize_by_batch(x, gamma(), beta(), options_.epsilon);
      move_unbiased(x.sizes(), batch.mean, batch.variance);
      return batch.output;
    }
    const auto [variance, mean] =
        at::var_mean(x, other_axes(x), /*unbiased=*/false, /*keepdim=*/true);
    const Tensor output = scaled((x - mean) * (variance + options_.epsilon).rsqrt());
    move_unbiased(x.sizes(), mean.detach().flatten(), variance.detach().flatten());
    return output;
  }

  // The moving variance of images is the unbiased estimate, as in Keras.
  void move_unbiased(at::IntArrayRef x, const Tensor& mean, const Tensor& variance) const {
    const auto samples =
        static_cast<double>(c10::multiply_integers(x) / x[static_cast<size_t>(axis_)]);
    const double correction = is_of_images(x) ? samples / std::max(samples - 1, 1.0) : 1;
    move(mean, correction == 1 ? variance : variance * correction);
  }

  std::vector<int64_t> other_axes(const Tensor& x) const {
    std::vector<int64_t> others;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (d != axis_) others.push_back(d);
    }
    return others;
  }

  // The shape in which a number for each channel meets x.
  Shape broadcast_shape(const Tensor& x) const {
    Shape shape(static_cast<size_t>(x.dim()), 1);
    shape[static_cast<size_t>(axis_)] = x.size(axis_);
    return shape;
  }
  Tensor scaled(const Tensor& x) const { return NormalizingLayer::scaled(x, broadcast_shape(x)); }

  // The mean first and then the squares of the differences, since the mean of squares less the
  // square of the mean loses all digits of a small variance.
  Tensor by_sums(const Tensor& x, const Tensor& mask) {
    const std::vector<int64_t> others = other_axes(x);
    const Tensor counts = mask.defined() ? internal::mask_factors(mask, x).expand_as(x) : Tensor();
    const auto sum = [&](const Tensor& values) {
      return total((counts.defined() ? values * counts : values).sum(others));
    };
    const double own = static_cast<double>(x.size(axis_) == 0 ? 0 : x.numel() / x.size(axis_));
    const Tensor found =
        total(counts.defined() ? counts.sum(others) : at::full({}, own, x.options()));
    const Tensor count = found.clamp_min(1);
    const Shape broadcast = broadcast_shape(x);
    // A channel of which nothing counts keeps what it has moved to.
    const auto unless_empty = [&](const Tensor& value, const Variable& moving) {
      return counts.defined() ? at::where(found > 0, value, moving.value().detach()) : value;
    };
    const Tensor mean = unless_empty(sum(x) / count, moving_mean_);
    const Tensor centered = x - mean.reshape(broadcast);
    const Tensor variance = unless_empty(sum(centered.square()) / count, moving_variance_);
    const Tensor output =
        scaled(centered * (variance + options_.epsilon).rsqrt().reshape(broadcast));
    move(mean.detach(), variance.detach());
    return output;
  }

  // The sum over all replicas where the layer is synchronized.
  Tensor total(const Tensor& value) const {
    return options_.synchronized ? sum_over_replicas(value) : value;
  }

  static Tensor sum_over_replicas(const Tensor& value) {
    distribute::ReplicaContext* replica = distribute::get_replica_context();
    if (replica == nullptr || replica->num_replicas_in_sync() == 1) return value;
    return replica->all_reduce(distribute::ReduceOp::SUM, value);
  }

  void move(const Tensor& mean, const Tensor& variance) const {
    const NoGradient no_gradient;
    const double share = 1 - options_.momentum;
    const auto towards = [&](const Variable& moving, const Tensor& value) {
      const Tensor old = moving.value().detach();
      moving.assign_sub((old - value) * share);
    };
    towards(moving_mean_, mean);
    towards(moving_variance_, variance);
  }

  int64_t axis_ = -1;
  Variable moving_mean_;
  Variable moving_variance_;
};

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : LayerHandle(std::make_shared<BatchNormalizationImpl>(std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_batch_normalization(FieldReader& field) {
  layers::BatchNormalizationOptions options;
  field.common(options);
  layers::batch_normalization_fields(field, options);
  return layers::BatchNormalization(std::move(options));
}

}  // namespace cohort::internal
