// The values of a feature, compared and built again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/records/example.h"

namespace cohort::fuzz {

// Ends the program unless it holds.
void require_of_examples(bool holds, std::string_view property);

struct FeatureValues {
  internal::FeatureKind kind = internal::FeatureKind::kNone;
  std::vector<std::string> bytes = {};
  std::vector<uint32_t> floats = {};  // their bits: NaN is not NaN
  std::vector<int64_t> ints = {};

  bool operator==(const FeatureValues&) const = default;

  std::vector<std::string_view> views() const { return {bytes.begin(), bytes.end()}; }
  std::vector<float> floats_of_bits() const;
};

// `size`: the bytes that the feature is of.
FeatureValues values_of(const internal::FeatureView& feature, size_t size);

}  // namespace cohort::fuzz
