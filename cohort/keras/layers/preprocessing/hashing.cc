#include "cohort/keras/layers/preprocessing/hashing.h"

#include <ATen/ops/empty.h>

#include <charconv>
#include <limits>
#include <string_view>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/bytes/keyed_hash.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/preprocessing/category_leaf.h"
#include "cohort/keras/layers/preprocessing/output_mode.h"

namespace cohort::keras::layers {
namespace {

using internal::OutputMode;
using internal::str;

constexpr OutputMode kHashingModes[] = {OutputMode::kInt, OutputMode::kOneHot,
                                        OutputMode::kMultiHot, OutputMode::kCount};

std::optional<internal::HashKey> key_of(const HashSalt& salt) {
  if (!salt.numbers()) return std::nullopt;
  const auto& [first, second] = *salt.numbers();
  return internal::HashKey{static_cast<uint64_t>(first), static_cast<uint64_t>(second)};
}

class HashingImpl final : public Layer {
 public:
  HashingImpl(int64_t num_bins, HashingOptions options)
      : Layer("Hashing", {.name = options.name, .autocast = false}),
        num_bins_(num_bins),
        mask_(std::move(options.mask_value)),
        salt_(options.salt),
        key_(key_of(options.salt)) {
    encoding_.mode = internal::output_mode_of(options.output_mode, where(), kHashingModes);
    encoding_.dtype = internal::output_dtype_of(encoding_.mode, options.dtype, where());
    encoding_.depth = num_bins;
    if (num_bins < 1) {
      throw InvalidArgumentError(str(where(), ": num_bins is ", num_bins, "; it must be above 0"));
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      using Json = internal::Json;
      field("dtype", encoding_.dtype);
      field("num_bins", num_bins_);
      Json salt;
      if (const auto& numbers = salt_.numbers()) salt = {numbers->first, numbers->second};
      field.always("salt", std::move(salt));
      Json mask;
      if (const auto* text = std::get_if<std::string>(&mask_)) mask = *text;
      if (const auto* number = std::get_if<int64_t>(&mask_)) mask = *number;
      field.always("mask_value", std::move(mask));
      field("output_mode", internal::output_mode_name(encoding_.mode));
      field.always("sparse", false);
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    return internal::encode_inputs(inputs, encoding_, where(),
                                   [this](const Leaf& leaf) { return bins_of(leaf); });
  }

 private:
  std::string where() const { return str("layer '", name(), "'"); }

  Tensor bins_of(const Leaf& leaf) const {
    Tensor bins = at::empty(leaf.sizes(), int64);
    auto* bin = bins.data_ptr<int64_t>();
    if (leaf.is_strings()) {
      const std::string* const mask = mask_of<std::string>(leaf);
      const std::string_view* const values = leaf.strings().data();
      for (int64_t i = 0; i < leaf.strings().numel(); ++i) {
        bin[i] = mask != nullptr && values[i] == *mask ? 0 : bin_of(values[i]);
      }
      return bins;
    }
    const Tensor integers = internal::host_integers(leaf, where());
    const int64_t* const mask = mask_of<int64_t>(leaf);
    const auto* values = integers.data_ptr<int64_t>();
    char digits[std::numeric_limits<int64_t>::digits10 + 2];  // a sign, and a digit more
    for (int64_t i = 0; i < integers.numel(); ++i) {
      const auto end = std::to_chars(std::begin(digits), std::end(digits), values[i]).ptr;
      const std::string_view text(digits, static_cast<size_t>(end - digits));
      bin[i] = mask != nullptr && values[i] == *mask ? 0 : bin_of(text);
    }
    return bins;
  }

  int64_t bin_of(std::string_view bytes) const {
    const bool keeps_bin_0 = has_mask() && num_bins_ > 1;
    const uint64_t hash =
        key_ ? internal::keyed_hash64(bytes, *key_) : internal::fingerprint64(bytes);
    const int64_t first = keeps_bin_0 ? 1 : 0;
    return first + static_cast<int64_t>(hash % static_cast<uint64_t>(num_bins_ - first));
  }

  bool has_mask() const { return !std::holds_alternative<std::monostate>(mask_); }

  // The mask value, which must be of the kind of the leaf; nullptr: none.
  template <class Value>
  const Value* mask_of(const Leaf& leaf) const {
    const auto* mask = std::get_if<Value>(&mask_);
    if (mask != nullptr || !has_mask()) return mask;
    throw InvalidArgumentError(str(where(), ": mask_value is ",
                                   leaf.is_strings() ? "an integer" : "a string", ", but got ",
                                   internal::describe_leaves(Structure(leaf))));
  }

  int64_t num_bins_;
  std::variant<std::monostate, std::string, int64_t> mask_;
  HashSalt salt_;
  std::optional<internal::HashKey> key_;
  internal::Encoding encoding_;
};

}  // namespace

Hashing::Hashing(int64_t num_bins, HashingOptions options)
    : LayerHandle(std::make_shared<HashingImpl>(num_bins, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_hashing(FieldReader& field) {
  keras::layers::HashingOptions options;
  int64_t num_bins = 0;
  read_category_options(field, options);
  field("num_bins", num_bins);
  if (const Json* salt = field.find("salt"); salt != nullptr && salt->is_array()) {
    std::vector<int64_t> numbers;
    field("salt", numbers);
    if (numbers.size() != 2) throw_wrong_field(*salt, "one integer, or two", quoted("salt"));
    options.salt = {numbers[0], numbers[1]};
  } else if (salt != nullptr && !salt->is_null()) {
    int64_t both = 0;
    field("salt", both);
    options.salt = both;
  }
  if (const Json* mask = field.find("mask_value"); mask != nullptr && mask->is_string()) {
    options.mask_value = mask->get<std::string>();
  } else if (mask != nullptr && !mask->is_null()) {
    field("mask_value", options.mask_value.emplace<int64_t>());
  }
  return keras::layers::Hashing(num_bins, std::move(options));
}

}  // namespace cohort::internal
