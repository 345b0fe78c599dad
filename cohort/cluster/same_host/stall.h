// Detects that an end of a connection stands still: bytes that should move do not.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::internal::rpc {

// Asked at each tick. Thread safety: none.
class Stall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How long `moved`, a count of bytes, has stood still while more were expected. At most a second
  // counts of the time between two ticks: a process that was stopped itself blames nobody for that
  // time.
  std::chrono::nanoseconds stands_still(bool expects_more, uint64_t moved, Time now);

 private:
  uint64_t moved_ = 0;
  std::optional<Time> last_tick_;
  std::chrono::nanoseconds still_{0};
};

}  // namespace cohort::internal::rpc
