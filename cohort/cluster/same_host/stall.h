// Whether bytes that should move do: what finds an end of a connection that stands still.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::internal::rpc {

// Asked at each tick. Thread safety: none.
class Stall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How long `moved`, a count of bytes, has stood still while more were expected. Of the time between two ticks a
  // second counts at most: a process that was stopped itself blames nobody for what it has not seen.
  std::chrono::nanoseconds stands_still(bool expects_more, uint64_t moved, Time now);

 private:
  uint64_t moved_ = 0;
  std::optional<Time> last_tick_;
  std::chrono::nanoseconds still_{0};
};

}  // namespace cohort::internal::rpc
