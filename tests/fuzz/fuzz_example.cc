// Any bytes are a tf.Example or a DataLossError; and the example that is built of what was parsed
// is parsed as the same.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/data/records/example.h"
#include "cohort/data/records/example_builder.h"
#include "tests/fuzz/peak_memory.h"

namespace {

using cohort::internal::FeatureKind;
using cohort::internal::FeatureView;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_example: broken property: " << property << '\n';
  std::abort();
}

struct Values {
  FeatureKind kind = FeatureKind::kNone;
  std::vector<std::string> bytes = {};
  std::vector<uint32_t> floats = {};  // their bits: NaN is not NaN
  std::vector<int64_t> ints = {};

  bool operator==(const Values&) const = default;
};

Values values_of(const FeatureView& feature, size_t size) {
  Values values{.kind = feature.kind()};
  const size_t count = feature.count();
  require(count <= size, "no more values than bytes");
  if (feature.kind() == FeatureKind::kBytes) {
    feature.for_each_bytes([&](std::string_view value) { values.bytes.emplace_back(value); });
    require(values.bytes.size() == count, "as many strings as were counted");
  } else if (feature.kind() == FeatureKind::kFloats) {
    std::vector<float> floats(count);
    require(feature.copy_floats(floats.data(), count) == count, "as many floats as were counted");
    values.floats.resize(count);
    if (count > 0) std::memcpy(values.floats.data(), floats.data(), count * sizeof(float));
  } else if (feature.kind() == FeatureKind::kInts) {
    values.ints.resize(count);
    require(feature.copy_ints(values.ints.data(), count) == count, "as many as were counted");
    std::vector<int64_t> half(count / 2);
    require(feature.copy_ints(half.data(), half.size()) == count, "their number without room");
    require(std::equal(half.begin(), half.end(), values.ints.begin()), "the first of them");
  }
  return values;
}

std::map<std::string, Values> parse(std::string_view bytes) {
  std::map<std::string, Values> features;
  cohort::internal::for_each_feature(bytes, [&](std::string_view name, const FeatureView& feature) {
    if (feature.kind() == FeatureKind::kNone) return;
    features[std::string(name)] = values_of(feature, bytes.size());
  });
  return features;
}

std::string build(const std::map<std::string, Values>& features) {
  cohort::io::ExampleBuilder example;
  for (const auto& [name, values] : features) {
    if (values.kind == FeatureKind::kBytes) {
      const std::vector<std::string_view> views(values.bytes.begin(), values.bytes.end());
      example.add_bytes(name, views);
    } else if (values.kind == FeatureKind::kFloats) {
      std::vector<float> floats;
      for (const uint32_t bits : values.floats) floats.push_back(std::bit_cast<float>(bits));
      example.add_floats(name, floats);
    } else {
      example.add_ints(name, values.ints);
    }
  }
  return example.serialize();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    {
      const cohort::fuzz::PeakMemory memory;
      cohort::internal::for_each_feature(
          bytes, [&](std::string_view, const FeatureView& feature) { feature.count(); });
      require(memory.peak_bytes() <= 4096, "parsing takes no memory");
    }
    const auto features = parse(bytes);
    require(parse(build(features)) == features, "what is built is what was parsed");
  } catch (const cohort::DataLossError&) {
    // Not an example.
  }
  return 0;
}
