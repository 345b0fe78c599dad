// Whether others take cores from this process's threads, by the kernel's own count.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "cohort/core/host/core_contention.h"

namespace cohort::internal {

// Threads of libraries that wait for each other tell nobody that they are late. So this counts how
// often they are preempted.
// Thread safety: any thread.
class PreemptionWatch {
 public:
  using Time = CoreContention::Time;
  // How often threads of this process have lost a core that they still wanted, so far.
  using Count = std::function<int64_t()>;
  PreemptionWatch(CoreContention& contention, Count count)
      : contention_(contention), count_(std::move(count)) {}

  // Counts preemptions, at most once in kInterval, and notes contention if threads were preempted
  // often since the last time. Costs one atomic load when it does not count.
  void look(Time now);

  static constexpr std::chrono::milliseconds kInterval{20};
  // Fewer preemptions than this may be due to the kernel's own threads.
  static constexpr int kLeast = 2;
  static constexpr int kPerSecond = 50;

 private:
  CoreContention& contention_;
  const Count count_;
  // In ticks of the clock. The thread that sets next_ counts.
  std::atomic<Time::rep> next_{0};
  std::atomic<Time::rep> last_time_{0};
  std::atomic<int64_t> last_count_{-1};
};

// The one of this process.
PreemptionWatch& preemption_watch();

}  // namespace cohort::internal
