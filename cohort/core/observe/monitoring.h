// Counters and timings of this process: the library counts what is used and how long that takes,
// and a program can read it. Nothing depends on it.
//
//   monitoring::value("distribution_strategy_input_api_counter",
//                     {"MirroredStrategy", "distribute_dataset"});
//   const double seconds = monitoring::timings().front().seconds;  // of the first of its names
#pragma once

#include <array>
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

// How often something was timed, and how long it took.
struct Timing {
  // Upper bounds of the first intervals, in seconds; what took longer is in the last one.
  static constexpr std::array<double, 9> kBounds = {1e-5, 1e-4, 1e-3, 1e-2, 0.1,
                                                    1.,   10.,  100., 1e3};

  std::string name;  // docs/cluster.md lists the names
  int64_t count = 0;
  double seconds = 0;                                      // of all together
  std::array<int64_t, kBounds.size() + 1> intervals = {};  // how many took how long
};

// Ordered by name. Numbers of one timing that is under way may be one apart.
// Thread safety: any thread.
COHORT_API std::vector<Timing> timings();

}  // namespace cohort::monitoring

namespace cohort::internal {

void increase_counter(std::string_view name, std::vector<std::string> labels, int64_t by = 1);
void set_gauge(std::string_view name, std::vector<std::string> labels, int64_t value);

}  // namespace cohort::internal
