// Lines that replicas print in a step, in replica order.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cohort::internal {

// Replica 0's lines are written at once. Those of the others are kept until flush(): between two
// flushes, all lines of a replica follow all lines of the one before. Outside of a step, lines are
// written at once: a replica that was given up prints to a stream that may be gone by the next
// step.
// Thread safety: any thread.
class StepOutput {
 public:
  explicit StepOutput(int num_replicas) : lines_(static_cast<size_t>(num_replicas)) {}

  // A step begins; no replica is inside an earlier one.
  void begin();
  // The next step of several that run as one.
  void next_step() { ++step_; }
  // The number of steps that have begun. Thread safety: while a step runs.
  int64_t step() const { return step_; }
  // Writes what is kept, and ends the step. Never throws.
  void end() noexcept;
  // Writes `line`, with its end, now or later: `out` must live until the step has ended.
  void add(int local_replica, std::ostream& out, std::string line);
  // Writes what is kept. Never throws.
  void flush() noexcept;

 private:
  void write_kept() noexcept;

  std::mutex mutex_;
  bool in_step_ = false;
  int64_t step_ = 0;
  std::vector<std::vector<std::pair<std::ostream*, std::string>>> lines_;
};

// Writes and flushes a whole line; lines of several threads do not mix.
void write_line(std::ostream& out, const std::string& line);

}  // namespace cohort::internal
