#include "cohort/keras/layers/preprocessing/hashed_crossing.h"

#include <ATen/ops/full.h>

#include <utility>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/preprocessing/category_leaf.h"
#include "cohort/keras/layers/preprocessing/output_mode.h"

namespace cohort::keras::layers {
namespace {

using internal::OutputMode;
using internal::str;

constexpr OutputMode kCrossingModes[] = {OutputMode::kInt, OutputMode::kOneHot};
// What TensorFlow's crosses begin with.
constexpr uint64_t kNothingCrossed = 0xdecafcaffe;

class HashedCrossingImpl final : public Layer {
 public:
  HashedCrossingImpl(int64_t num_bins, const HashedCrossingOptions& options)
      : Layer("HashedCrossing", {.name = options.name, .autocast = false}), num_bins_(num_bins) {
    encoding_.mode = internal::output_mode_of(options.output_mode, where(), kCrossingModes);
    encoding_.dtype = internal::output_dtype_of(encoding_.mode, options.dtype, where());
    encoding_.depth = num_bins;
    if (num_bins < 1) {
      throw InvalidArgumentError(str(where(), ": num_bins is ", num_bins, "; it must be above 0"));
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      field("dtype", encoding_.dtype);
      field("num_bins", num_bins_);
      field("output_mode", internal::output_mode_name(encoding_.mode));
      field.always("sparse", false);
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    check(inputs);
    return internal::encode_inputs(inputs[0], encoding_, where(),
                                   [&](const Leaf&) { return cross(inputs); });
  }

 private:
  std::string where() const { return str("layer '", name(), "'"); }

  void check(const Structure& inputs) const {
    const auto fail = [&](const char* wanted) {
      throw InvalidArgumentError(
          str(where(), " takes ", wanted, ", but got ", internal::describe_leaves(inputs)));
    };
    if (!inputs.is_tuple() || inputs.members().size() < 2) fail("a tuple of two inputs or more");
    for (const Structure& input : inputs.members()) {
      if (!input.is_leaf()) fail("dense strings and integers");
    }
    const auto sizes = inputs[0].leaf().sizes();
    if (sizes.size() > 2 || (sizes.size() == 2 && sizes[1] != 1)) fail("inputs [], [n] or [n, 1]");
    for (const Structure& input : inputs.members()) {
      if (input.leaf().sizes() != sizes) fail("inputs of one shape");
    }
  }

  Tensor cross(const Structure& inputs) const {
    Tensor bins =
        at::full(inputs[0].leaf().sizes(), static_cast<int64_t>(kNothingCrossed), at::kLong);
    auto* crossed = bins.data_ptr<int64_t>();
    const int64_t count = bins.numel();
    const auto join = [crossed](int64_t i, uint64_t feature) {
      crossed[i] = static_cast<int64_t>(
          internal::joined_fingerprint64(static_cast<uint64_t>(crossed[i]), feature));
    };
    for (const Structure& input : inputs.members()) {
      const Leaf& leaf = input.leaf();
      if (leaf.is_strings()) {
        const auto* values = leaf.strings().data();
        for (int64_t i = 0; i < count; ++i) join(i, internal::fingerprint64(values[i]));
      } else {
        const Tensor integers = internal::host_integers(leaf, where());
        const auto* values = integers.data_ptr<int64_t>();
        for (int64_t i = 0; i < count; ++i) join(i, static_cast<uint64_t>(values[i]));
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      crossed[i] = static_cast<int64_t>(static_cast<uint64_t>(crossed[i]) %
                                        static_cast<uint64_t>(num_bins_));
    }
    return bins;
  }

  int64_t num_bins_;
  internal::Encoding encoding_;
};

}  // namespace

HashedCrossing::HashedCrossing(int64_t num_bins, HashedCrossingOptions options)
    : LayerHandle(std::make_shared<HashedCrossingImpl>(num_bins, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_hashed_crossing(FieldReader& field) {
  keras::layers::HashedCrossingOptions options;
  int64_t num_bins = 0;
  read_category_options(field, options);
  field("num_bins", num_bins);
  return keras::layers::HashedCrossing(num_bins, std::move(options));
}

}  // namespace cohort::internal
