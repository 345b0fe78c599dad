// Any bytes are a SequenceExample or a DataLossError; and the one that is built of what was parsed
// is parsed as the same.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

using Steps = std::vector<FeatureValues>;

// The lists; a step without a kind is one without values.
std::map<std::string, Steps> parse(std::string_view bytes) {
  std::map<std::string, Steps> lists;
  cohort::internal::for_each_feature_list(bytes, [&](std::string_view name, std::string_view list) {
    Steps& steps = lists[std::string(name)];
    steps.clear();
    cohort::internal::for_each_step(list, [&](const FeatureView& step) {
      steps.push_back(cohort::fuzz::values_of(step, bytes.size()));
      if (step.kind() == FeatureKind::kNone) steps.back().kind = FeatureKind::kInts;
    });
  });
  return lists;
}

std::string build(const std::map<std::string, Steps>& lists) {
  cohort::io::SequenceExampleBuilder example;
  for (const auto& [name, steps] : lists) {
    example.add_list(name);
    for (const FeatureValues& step : steps) {
      if (step.kind == FeatureKind::kBytes) {
        example.add_step_bytes(name, step.views());
      } else if (step.kind == FeatureKind::kFloats) {
        example.add_step_floats(name, step.floats_of_bits());
      } else {
        example.add_step_ints(name, step.ints);
      }
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
      cohort::internal::for_each_feature_list(bytes, [&](std::string_view, std::string_view list) {
        cohort::internal::for_each_step(list, [&](const FeatureView& step) { step.count(); });
      });
      require_of_examples(memory.peak_bytes() <= 4096, "parsing takes no memory");
    }
    const auto lists = parse(bytes);
    require_of_examples(parse(build(lists)) == lists, "what is built is what was parsed");
  } catch (const cohort::DataLossError&) {
    // Not a sequence example.
  }
  return 0;
}
