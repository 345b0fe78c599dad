// Any bytes are a tf.Example or a DataLossError; and the example that is built of what was parsed
// is parsed as the same.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/data/records/example.h"
#include "cohort/data/records/example_builder.h"
#include "tests/fuzz/example_values.h"
#include "tests/fuzz/peak_memory.h"

namespace {

using cohort::fuzz::FeatureValues;
using cohort::fuzz::require_of_examples;
using cohort::internal::FeatureKind;
using cohort::internal::FeatureView;

using Features = std::map<std::string, FeatureValues>;

Features parse(std::string_view bytes) {
  Features features;
  cohort::internal::for_each_feature(bytes, [&](std::string_view name, const FeatureView& feature) {
    if (feature.kind() == FeatureKind::kNone) return;
    features[std::string(name)] = cohort::fuzz::values_of(feature, bytes.size());
  });
  return features;
}

std::string build(const Features& features) {
  cohort::io::ExampleBuilder example;
  for (const auto& [name, values] : features) {
    if (values.kind == FeatureKind::kBytes) {
      example.add_bytes(name, values.views());
    } else if (values.kind == FeatureKind::kFloats) {
      example.add_floats(name, values.floats_of_bits());
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
      require_of_examples(memory.peak_bytes() <= 4096, "parsing takes no memory");
    }
    const auto features = parse(bytes);
    require_of_examples(parse(build(features)) == features, "what is built is what was parsed");
  } catch (const cohort::DataLossError&) {
    // Not an example.
  }
  return 0;
}
