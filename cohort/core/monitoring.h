// Counters of what this process has used: the library counts, and a program can read them. Nothing
// depends on them.
//
//   monitoring::value("distribution_strategy_input_api_counter",
//                     {"MirroredStrategy", "distribute_dataset"});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::monitoring {

// A number and its labels: for example the strategy and the function that was called.
struct Sample {
  std::string name;
  std::vector<std::string> labels;
  int64_t value = 0;
};

// The value of a counter; docs/distributed_input.md lists the names. 0 if nothing was counted.
// Thread safety: any thread.
COHORT_API int64_t value(std::string_view name, const std::vector<std::string>& labels = {});
// All of them, ordered by name and labels.
COHORT_API std::vector<Sample> samples();

}  // namespace cohort::monitoring

namespace cohort::internal {

void increase_counter(std::string_view name, std::vector<std::string> labels, int64_t by = 1);
void set_gauge(std::string_view name, std::vector<std::string> labels, int64_t value);

}  // namespace cohort::internal
