#include "tests/fuzz/example_values.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace cohort::fuzz {

using internal::FeatureKind;
using internal::FeatureView;

void require_of_examples(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "examples: broken property: " << property << '\n';
  std::abort();
}

std::vector<float> FeatureValues::floats_of_bits() const {
  std::vector<float> values;
  for (const uint32_t bits : floats) values.push_back(std::bit_cast<float>(bits));
  return values;
}

FeatureValues values_of(const FeatureView& feature, size_t size) {
  FeatureValues values{.kind = feature.kind()};
  const size_t count = feature.count();
  require_of_examples(count <= size, "no more values than bytes");
  if (feature.kind() == FeatureKind::kBytes) {
    feature.for_each_bytes([&](std::string_view value) { values.bytes.emplace_back(value); });
    require_of_examples(values.bytes.size() == count, "as many strings as were counted");
  } else if (feature.kind() == FeatureKind::kFloats) {
    std::vector<float> floats(count);
    require_of_examples(feature.copy_floats(floats.data(), count) == count,
                        "as many floats as were counted");
    values.floats.resize(count);
    if (count > 0) std::memcpy(values.floats.data(), floats.data(), count * sizeof(float));
  } else if (feature.kind() == FeatureKind::kInts) {
    values.ints.resize(count);
    require_of_examples(feature.copy_ints(values.ints.data(), count) == count,
                        "as many as were counted");
    std::vector<int64_t> half(count / 2);
    require_of_examples(feature.copy_ints(half.data(), half.size()) == count,
                        "their number without room");
    require_of_examples(std::equal(half.begin(), half.end(), values.ints.begin()),
                        "the first of them");
  }
  return values;
}

}  // namespace cohort::fuzz
