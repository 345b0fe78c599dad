// Elastic groups in one thread: tasks that work in steps, form groups, are lost, come and leave,
// over the simulated network and processes of the membership. All that happens follows from a seed.
//
//   FormingResult result = simulate_forming({.seed = 42, .trace = &std::cerr});
//   if (!result.violation.empty()) ...    // simulate_forming({.seed = 42}) shows it again
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace cohort::internal::elastic {

struct FormingOptions {
  uint64_t seed = 0;
  int most_faults = 6;
  bool moves = false;             // the service of the membership, when its task is lost
  std::ostream* trace = nullptr;  // a line for each thing that happens
};

struct FormingResult {
  std::string violation;  // empty: all invariants held
  int faults = 0;
  int tasks = 0;
  int lives = 0;              // processes of tasks
  int services = 0;           // of the coordination
  int records = 0;            // that tasks took
  int64_t steps = 0;          // that all members finished
  int refused = 0;            // tasks with another program
  int leavers = 0;            // that a record has let go
  int behind = 0;             // members that took a state from others, comers not
  int comers = 0;             // members that did and had none
  int apart = 0;              // steps of a group that had been given up, and did not know it yet
  double longest_end_ms = 0;  // from the last fault's end until all work as one group
};

// The invariants are those of docs/membership.md, "Elastic groups: forming".
FormingResult simulate_forming(const FormingOptions& options);

}  // namespace cohort::internal::elastic
