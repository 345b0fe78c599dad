#include "cohort/keras/layers/preprocessing/discretization.h"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "cohort/core/profiler/tracing.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/preprocessing/adapt.h"
#include "cohort/keras/layers/preprocessing/category_leaf.h"
#include "cohort/keras/layers/preprocessing/output_mode.h"
#include "cohort/keras/layers/preprocessing/quantile_summary.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using internal::OutputMode;
using internal::QuantileSummary;
using internal::str;

constexpr OutputMode kBinModes[] = {OutputMode::kInt, OutputMode::kOneHot, OutputMode::kMultiHot,
                                    OutputMode::kCount};

Tensor float_tensor(const std::vector<float>& values) {
  return at::tensor(values, at::dtype(at::kFloat));
}

// A summary in a checkpoint: float32 [2, n], the numbers and their weights.
class SavedSummary final : public train::Trackable {
 public:
  using Get = std::function<const QuantileSummary&()>;
  using Set = std::function<void(std::vector<float> values, std::vector<float> weights)>;

  SavedSummary(Get get, Set set) : get_(std::move(get)), set_(std::move(set)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    const QuantileSummary& summary = get_();
    Tensor saved = at::empty({2, static_cast<int64_t>(summary.values().size())}, float32);
    saved.select(0, 0).copy_(float_tensor(summary.values()));
    saved.select(0, 1).copy_(float_tensor(summary.weights()));
    return {{.attribute = train::kVariableValue,
             .full_name = "summary",
             .parts = {{Leaf(std::move(saved))}}}};
  }
  void prepare_restore(train::RestoreSource& source) override {
    const auto shape = source.shape(train::kVariableValue);
    if (!shape) return;
    if (shape->size() != 2 || (*shape)[0] != 2) {
      throw InvalidArgumentError(str("the summary of a Discretization layer is [2, n], but the ",
                                     "checkpoint has ", internal::shape_str(*shape)));
    }
    source.read(train::kVariableValue, *shape, float32, [this](const Tensor& saved) {
      const auto* numbers = saved.data_ptr<float>();
      const auto* weights = numbers + saved.size(1);
      set_({numbers, weights}, {weights, weights + saved.size(1)});
    });
  }

 private:
  Get get_;
  Set set_;
};

class DiscretizationImpl final : public Layer, public internal::VocabularyKeeper {
 public:
  explicit DiscretizationImpl(DiscretizationOptions options)
      : Layer("Discretization", {.name = options.name, .autocast = false}),
        given_(std::move(options.bin_boundaries)),
        num_bins_(options.num_bins),
        epsilon_(options.epsilon),
        summary_(options.epsilon),
        saved_([this]() -> const QuantileSummary& { return summary_; },
               [this](std::vector<float> values, std::vector<float> weights) {
                 take(QuantileSummary(epsilon_, std::move(values), std::move(weights)));
               }) {
    encoding_.mode = internal::output_mode_of(options.output_mode, where(), kBinModes);
    encoding_.dtype = internal::output_dtype_of(encoding_.mode, options.dtype, where());
    check_options();
    if (is_given()) boundaries_ = float_tensor({given_.begin(), given_.end()});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      field("dtype", encoding_.dtype);
      field("bin_boundaries", is_given() ? std::optional(given_) : std::nullopt);
      field("num_bins", num_bins_);
      field("epsilon", epsilon_);
      field("output_mode", internal::output_mode_name(encoding_.mode));
      field.always("sparse", false);
    });
  }
  std::vector<train::TrackableChild> checkpoint_children() override {
    if (is_given()) return {};
    return {{"summary", &saved_}};
  }
  bool keeps_weights() const override { return !is_given(); }

  // Data: a Dataset or a Leaf.
  template <class Data>
  void adapt(const Data& data, const AdaptOptions& options) {
    const NoGradient no_gradient;
    if (is_given()) {
      throw FailedPreconditionError(str(where(), " was made with bin_boundaries and cannot adapt; ",
                                        "give num_bins instead"));
    }
    QuantileSummary learned(epsilon_);
    internal::read_to_adapt(data, options, where(), [&](const Leaf& leaf) { add(learned, leaf); });
    if (learned.empty()) throw InvalidArgumentError(str(where(), ": adapt got no data"));
    check_columns(learned);
    take(std::move(learned));
  }

  std::vector<double> boundaries() const {
    if (is_given() || !boundaries_.defined()) return given_;
    const auto* numbers = boundaries_.data_ptr<float>();
    return {numbers, numbers + boundaries_.numel()};
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    internal::Encoding encoding = encoding_;
    if (boundaries_.defined()) {
      encoding.depth = boundaries_.numel() + 1;
    } else if (internal::is_tracing()) {
      encoding.depth = *num_bins_;
    } else {
      throw FailedPreconditionError(
          str(where(), " has no boundaries yet: let it adapt to data, before it is called"));
    }
    return internal::encode_inputs(inputs, encoding, where(),
                                   [this](const Leaf& leaf) { return bins_of(leaf); });
  }

 private:
  std::string where() const { return str("layer '", name(), "'"); }
  bool is_given() const { return !given_.empty(); }

  void check_options() const {
    const auto fail = [this](const auto&... parts) {
      throw InvalidArgumentError(str(where(), ": ", parts...));
    };
    if (is_given() && num_bins_) fail("bin_boundaries and num_bins were given; give one of both");
    if (!is_given() && !num_bins_) {
      fail("give bin_boundaries, or num_bins, for which adapt learns them");
    }
    if (num_bins_ && *num_bins_ < 1) fail("num_bins is ", *num_bins_, "; it must be above 0");
    if (!(epsilon_ > 0 && epsilon_ < 1)) fail("epsilon is ", epsilon_, "; it must lie in (0, 1)");
    for (size_t i = 0; i < given_.size(); ++i) {
      if (std::isnan(given_[i])) fail("bin_boundaries[", i, "] is not a number");
      if (i == 0 || given_[i - 1] <= given_[i]) continue;
      fail("bin_boundaries must ascend, but at index ", i, " ", given_[i], " follows ",
           given_[i - 1]);
    }
  }

  // Numbers of any kind. Errors: InvalidArgument.
  Tensor numbers_of(const Leaf& leaf, const char* for_what) const {
    const bool is_number =
        leaf.is_tensor() && (at::isIntegralType(leaf.tensor().scalar_type(), false) ||
                             at::isFloatingType(leaf.tensor().scalar_type()));
    if (is_number) return leaf.tensor().detach();
    throw InvalidArgumentError(str(where(), for_what, " takes numbers, but got ",
                                   internal::describe_leaves(Structure(leaf))));
  }

  void add(QuantileSummary& summary, const Leaf& leaf) const {
    const Tensor batch = numbers_of(leaf, ": adapt").to(at::kCPU, at::kFloat).contiguous();
    const auto* numbers = batch.data_ptr<float>();
    std::vector<float> values(numbers, numbers + batch.numel());
    if (std::any_of(values.begin(), values.end(), [](float x) { return std::isnan(x); })) {
      throw InvalidArgumentError(
          str(where(), ": adapt got NaN, which lies in no bin; leave it out of the data"));
    }
    if (summary.add(std::move(values))) return;
    throw InvalidArgumentError(str(where(), ": adapt got so many infinities of both signs that no ",
                                   "boundary lies between them"));
  }

  // What a model has been built for stays.
  void check_columns(const QuantileSummary& learned) const {
    if (encoding_.mode == OutputMode::kInt || !boundaries_.defined()) return;
    const auto bins = static_cast<int64_t>(learned.boundaries(*num_bins_).size()) + 1;
    if (bins == boundaries_.numel() + 1) return;
    throw FailedPreconditionError(str(where(), ": its outputs have ", boundaries_.numel() + 1,
                                      " columns, one a bin, so that the ", bins,
                                      " bins of the new data do not fit"));
  }

  // Nothing learned leaves no boundaries.
  void take(QuantileSummary summary) {
    summary_ = std::move(summary);
    boundaries_ =
        summary_.empty() ? Tensor() : float_tensor(summary_.boundaries(num_bins_.value_or(1)));
  }

  Tensor bins_of(const Leaf& leaf) const {
    Tensor numbers = numbers_of(leaf, "");
    if (!boundaries_.defined()) return at::zeros_like(numbers, at::dtype(at::kLong));
    // Keras casts floating inputs where it computes in a floating dtype. It compares float64 in
    // float64, and everything else in float32.
    if (numbers.is_floating_point() && at::isFloatingType(encoding_.dtype)) {
      numbers = numbers.to(encoding_.dtype);
    }
    if (numbers.scalar_type() != float64) numbers = numbers.to(float32);
    return at::bucketize(numbers, boundaries_.to(numbers.device(), numbers.scalar_type()),
                         /*out_int32=*/false, /*right=*/true)
        .contiguous();
  }

  const std::vector<double> given_;
  const std::optional<int64_t> num_bins_;
  const double epsilon_;
  internal::Encoding encoding_;
  QuantileSummary summary_;
  SavedSummary saved_;
  Tensor boundaries_;  // float32 on the host; undefined: none yet
};

DiscretizationImpl& impl_of(const Discretization& layer) {
  return static_cast<DiscretizationImpl&>(*layer.get());
}

}  // namespace

Discretization::Discretization(DiscretizationOptions options)
    : LayerHandle(std::make_shared<DiscretizationImpl>(std::move(options))) {}

void Discretization::adapt(const data::Dataset& dataset, const AdaptOptions& options) const {
  impl_of(*this).adapt(dataset, options);
}

void Discretization::adapt(const Tensor& data, const AdaptOptions& options) const {
  impl_of(*this).adapt(Leaf(data), options);
}

std::vector<double> Discretization::bin_boundaries() const { return impl_of(*this).boundaries(); }

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_discretization(FieldReader& field) {
  keras::layers::DiscretizationOptions options;
  read_category_options(field, options);
  std::optional<std::vector<double>> boundaries;
  field("bin_boundaries", boundaries);
  if (boundaries) options.bin_boundaries = std::move(*boundaries);
  field("num_bins", options.num_bins);
  field("epsilon", options.epsilon);
  return keras::layers::Discretization(std::move(options));
}

}  // namespace cohort::internal
