// Tells whether others compute on this host, for threads that would poll for something rather than
// sleep until it comes.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace cohort::internal {

// Thread safety: any thread.
class FreeCores {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // How many threads of the host run, or could; nothing where the system does not tell.
  using CountRunning = std::function<std::optional<int>()>;
  FreeCores(int cores, CountRunning count_running)
      : cores_(cores), count_running_(std::move(count_running)) {}

  // Whether no more threads run than there are cores (or than the process's quota has). The count
  // may be some milliseconds old. If cores were not free it may be a second old, so that asking
  // costs nothing then.
  bool are_free(Time now);

 private:
  const int cores_;
  const CountRunning count_running_;
  std::mutex mutex_;  // guards what follows
  bool free_ = false;
  Time next_count_{};
  std::chrono::nanoseconds pause_{0};  // after the last count that found none free
};

// The free cores of this host.
FreeCores& host_cores();

// The number of running threads in the text of /proc/loadavg.
std::optional<int> running_threads(std::string_view loadavg);

}  // namespace cohort::internal
