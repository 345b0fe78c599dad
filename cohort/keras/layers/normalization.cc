#include "cohort/keras/layers/normalization.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/data/dataset.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/preprocessing/adapt.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// Mean and variance of a stream of batches, in float64.
struct Moments {
  Tensor mean;
  Tensor variance;
  int64_t count = 0;

  // Chan, Golub and LeVeque's (1979): the variance of two parts and that between their means.
  void add(const Tensor& batch_mean, const Tensor& batch_variance, int64_t batch_count) {
    if (batch_count == 0) return;
    if (count == 0) {
      mean = batch_mean;
      variance = batch_variance;
      count = batch_count;
      return;
    }
    const double share =
        static_cast<double>(batch_count) / static_cast<double>(count + batch_count);
    const Tensor total = mean * (1 - share) + batch_mean * share;
    variance = (variance + (mean - total).square()) * (1 - share) +
               (batch_variance + (batch_mean - total).square()) * share;
    mean = total;
    count += batch_count;
  }
};

class NormalizationImpl final : public Layer {
 public:
  explicit NormalizationImpl(NormalizationOptions options)
      : Layer("Normalization", {.name = options.name, .dtype = options.dtype}),
        options_(std::move(options)) {
    if (options_.mean.defined() != options_.variance.defined()) {
      throw InvalidArgumentError(str("Normalization: ", options_.mean.defined()
                                                            ? "mean is given, but no variance"
                                                            : "variance is given, but no mean"));
    }
    if (!is_given()) return;
    check_given("mean", options_.mean);
    check_given("variance", options_.variance);
    if (options_.variance.lt(0).any().item<bool>()) {
      throw InvalidArgumentError(
          str("Normalization: variance is ", Structure(options_.variance), ", in part below 0"));
    }
    // Copies: what the caller does with the given tensors is no part of the model.
    options_.mean = options_.mean.detach().clone();
    options_.variance = options_.variance.detach().clone();
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      if (options_.axis.empty()) {
        field.always("axis", nullptr);
      } else {
        field("axis", options_.axis);
      }
      field("mean", options_.mean);
      field("variance", options_.variance);
      field("invert", options_.invert);
    });
  }

  void check_can_adapt() const {
    if (is_given()) {
      throw FailedPreconditionError(
          str("layer '", name(), "' was made with mean and variance and cannot adapt"));
    }
    internal::check_adapts_outside_of_steps(str("layer '", name(), "'"));
  }

  // The default axis would take each place in a batch of data [batch] for a feature.
  [[noreturn]] void refuse_batch_of_numbers() const {
    throw InvalidArgumentError(str("layer '", name(), "': adapt got batches of numbers, [batch], ",
                                   "which have no axis of features; .axis = {} learns one mean and "
                                   "variance of all numbers"));
  }
  bool has_axes() const { return !options_.axis.empty(); }

  void add_to(Moments& moments, const Tensor& batch) {
    if (batch.dim() == 1) example_size_ = batch.size(0);
    if (!built()) (*this)(batch);
    if (has_axes()) check_like_before(batch);
    if (batch.numel() == 0) return;
    const Tensor values = batch.detach().to(at::kDouble);
    const bool is_one_example = has_axes() ? others_.empty() : values.dim() == 0;
    if (is_one_example) return moments.add(values, values * 0, 1);
    std::vector<int64_t> dims = others_;
    if (!has_axes()) {  // inputs of any rank
      dims.resize(static_cast<size_t>(values.dim()));
      std::iota(dims.begin(), dims.end(), 0);
    }
    const auto [variance, mean] = at::var_mean(values, dims, /*unbiased=*/false, false);
    moments.add(mean, variance, values.numel() / std::max<int64_t>(mean.numel(), 1));
  }

  void finish(const Moments& moments) {
    if (moments.count == 0) {
      throw InvalidArgumentError(str("layer '", name(), "': adapt got no data"));
    }
    mean_.assign(moments.mean.to(mean_.dtype()));
    variance_.assign(moments.variance.to(variance_.dtype()));
    count_.assign(at::full({}, moments.count, int64));
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    Shape shape = input_shapes[0];
    const auto rank = static_cast<int64_t>(shape.size());
    if (rank == 1 && has_axes()) shape[0] = size_of_example();
    std::vector<int64_t> kept;
    for (const int64_t axis : options_.axis) {
      kept.push_back(axis < 0 ? axis + rank : axis);
      const int64_t first = rank == 1 ? 0 : 1;  // one example has no axis of its batch
      if (kept.back() < first || kept.back() >= rank) {
        throw InvalidArgumentError(str("layer '", name(), "': axis ", axis,
                                       " is no axis of features of an input of rank ", rank,
                                       "; .axis = {} has one mean for all numbers"));
      }
    }
    std::sort(kept.begin(), kept.end());
    if (std::adjacent_find(kept.begin(), kept.end()) != kept.end()) {
      throw InvalidArgumentError(str("layer '", name(), "': axis names an axis twice"));
    }
    if (rank == 1 && has_axes()) {
      input_spec().min_rank = rank;
    } else if (has_axes()) {
      input_spec().rank = rank;
    }
    Shape sizes;
    broadcast_.clear();
    others_.clear();
    for (int64_t d = 0; d < rank; ++d) {
      const bool keep = std::find(kept.begin(), kept.end(), d) != kept.end();
      broadcast_.push_back(keep ? shape[static_cast<size_t>(d)] : 1);
      if (keep) sizes.push_back(broadcast_.back());
      if (!keep) others_.push_back(d);
    }
    const bool is_one_for_all =
        is_given() && options_.mean.numel() == 1 && options_.variance.numel() == 1;
    if (has_axes() && kept.back() == rank - 1 && !is_one_for_all) {
      input_spec().last_dim = shape.back();
    }
    if (is_given()) {
      options_.mean = in_sizes("mean", options_.mean, sizes);
      options_.variance = in_sizes("variance", options_.variance, sizes);
      return;
    }
    mean_ = add_weight("mean", sizes, {.initializer = "zeros", .trainable = false});
    variance_ = add_weight("variance", sizes, {.initializer = "ones", .trainable = false});
    count_ = add_weight("count", {}, {.initializer = "zeros", .trainable = false, .dtype = int64});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor x = in_compute_dtype(input);
    const Tensor mean = in_input_shape(is_given() ? options_.mean : mean_.value(), x);
    const Tensor deviation = in_input_shape(is_given() ? options_.variance : variance_.value(), x)
                                 .sqrt()
                                 .clamp_min(backend::kEpsilon);
    return options_.invert ? mean + x * deviation : (x - mean) / deviation;
  }

 private:
  bool is_given() const { return options_.mean.defined(); }
  // The size of one example without a batch; elsewhere dimension 0 counts as that of a batch.
  int64_t size_of_example() const {
    if (is_given()) return std::max(options_.mean.numel(), options_.variance.numel());
    if (example_size_) return *example_size_;
    throw InvalidArgumentError(str("layer '", name(), "' got an input [n] before it has learned ",
                                   "from any: call adapt first, give mean and variance, or add a ",
                                   "dimension for the batch; .axis = {} has one mean for all"));
  }
  void check_like_before(const Tensor& batch) const {
    const auto rank = static_cast<int64_t>(broadcast_.size());
    if (batch.dim() != rank) {
      throw InvalidArgumentError(str("layer '", name(), "' has adapted to batches of rank ", rank,
                                     ", but got ", internal::describe(batch)));
    }
    for (int64_t d = 0; d < rank; ++d) {
      const bool is_kept = std::find(others_.begin(), others_.end(), d) == others_.end();
      const int64_t wanted = broadcast_[static_cast<size_t>(d)];
      if (!is_kept || batch.size(d) == wanted) continue;
      throw InvalidArgumentError(str("layer '", name(), "' learns from data with ", wanted,
                                     " features along axis ", d, ", but got ",
                                     internal::describe(batch)));
    }
  }
  static void check_given(const char* option, const Tensor& numbers) {
    if (numbers.numel() > 0 && (at::isFloatingType(numbers.scalar_type()) ||
                                at::isIntegralType(numbers.scalar_type(), /*includeBool=*/false))) {
      return;
    }
    throw InvalidArgumentError(str("Normalization: ", option, " is ", internal::describe(numbers),
                                   "; it is an integer or floating number, or several"));
  }
  Tensor in_sizes(const char* option, const Tensor& given, const Shape& sizes) const {
    int64_t wanted = 1;
    for (const int64_t size : sizes) wanted *= size;
    if (given.numel() == 1 || given.numel() == wanted) return given;
    if (at::is_expandable_to(given.sizes(), sizes)) return given.expand(sizes).contiguous();
    throw InvalidArgumentError(str("layer '", name(), "': ", option, " is ",
                                   internal::describe(given), ", but the input has features of ",
                                   internal::shape_str(sizes), " along axis ",
                                   internal::shape_str(options_.axis)));
  }
  Tensor in_input_shape(const Tensor& numbers, const Tensor& x) const {
    const Tensor fitted = numbers.detach().to(x.device(), x.scalar_type());
    return fitted.numel() == 1 ? fitted.reshape({}) : fitted.reshape(broadcast_);
  }

  NormalizationOptions options_;
  std::vector<int64_t> broadcast_;       // the shape in which mean and variance meet an input
  std::optional<int64_t> example_size_;  // of the vectors that adapt gets
  std::vector<int64_t> others_;          // the dimensions over which they are taken
  Variable mean_;
  Variable variance_;
  Variable count_;
};

// Whether elements of one tensor are examples, and not batches, whose sizes may differ.
bool is_of_known_size(const data::Dataset& dataset) {
  const StructureSpec spec = dataset.element_spec();
  return spec.is_leaf() && spec.leaf().is_fully_defined();
}

NormalizationImpl& impl_of(const Normalization& layer) {
  return static_cast<NormalizationImpl&>(*layer.get());
}

}  // namespace

Normalization::Normalization(NormalizationOptions options)
    : LayerHandle(std::make_shared<NormalizationImpl>(std::move(options))) {}

void Normalization::adapt(const Tensor& batch) const {
  const NoGradient no_gradient;
  NormalizationImpl& layer = impl_of(*this);
  layer.check_can_adapt();
  if (batch.dim() == 1 && layer.has_axes()) layer.refuse_batch_of_numbers();
  Moments moments;
  layer.add_to(moments, batch);
  layer.finish(moments);
}

void Normalization::adapt(const data::Dataset& dataset, const AdaptOptions& options) const {
  const NoGradient no_gradient;
  NormalizationImpl& layer = impl_of(*this);
  layer.check_can_adapt();
  Moments moments;
  const std::string where = str("layer '", name(), "'");
  internal::read_to_adapt(dataset, options, where, [&](const Leaf& leaf) {
    if (!leaf.is_tensor()) {
      throw InvalidArgumentError(str(where, ": adapt takes elements of one tensor, but got ",
                                     internal::describe_leaves(Structure(leaf))));
    }
    const Tensor& tensor = leaf.tensor();
    if (tensor.dim() == 1 && layer.has_axes() && !layer.built() && !is_of_known_size(dataset)) {
      layer.refuse_batch_of_numbers();
    }
    layer.add_to(moments, tensor);
  });
  layer.finish(moments);
}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_normalization(FieldReader& field) {
  layers::NormalizationOptions options;
  field.common(options);
  const Json* axis = field.find("axis");
  if (axis != nullptr && axis->is_null()) {
    options.axis.clear();
  } else {
    field.one_or_list("axis", options.axis);
  }
  field("mean", options.mean);
  field("variance", options.variance);
  field("invert", options.invert);
  return layers::Normalization(std::move(options));
}

}  // namespace cohort::internal
