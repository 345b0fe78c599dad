// A cluster in one thread: a coordination service and agents over a network that delays, cuts and
// resets, in processes that crash, stop, go on and are started again, with clocks that differ. All
// that happens follows from a seed.
//
//   SimulationResult result = simulate({.seed = 42, .trace = &std::cerr});
//   if (!result.violation.empty()) ...    // simulate({.seed = 42}) shows it again
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace cohort::internal::membership {

struct SimulationOptions {
  uint64_t seed = 0;
  int most_faults = 5;
  bool elastic = false;           // a cluster whose group outlives its service
  std::ostream* trace = nullptr;  // a line for each thing that happens
};

struct SimulationResult {
  std::string violation;  // empty: all invariants held
  int faults = 0;
  int tasks = 0;
  uint64_t calls = 0;
  int lives = 0;  // processes
  int64_t stale_refused = 0;
  int deaths_checked = 0;  // of which all others had to learn within the bound
  double longest_detection_ms = 0;
  int store_calls = 0;
  int barriers_passed = 0;
  int takeovers = 0;               // services of a later term than the first
  double longest_takeover_ms = 0;  // from a death of the service's task until all have learned
};

// The invariants are those of docs/membership.md.
SimulationResult simulate(const SimulationOptions& options);

}  // namespace cohort::internal::membership
