// Whether others take cores from this process's threads, by the kernel's own count.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "cohort/core/host/core_contention.h"

namespace cohort::internal {

// Threads of libraries that wait for each other tell nobody that they are late. So this counts how
// often they are preempted. Threads of one process preempt each other as well, each time that one
// wakes another on its own core; so this also asks whether others have had any of the cores' time.
// Thread safety: any thread.
class PreemptionWatch {
 public:
  using Time = CoreContention::Time;
  // How often threads of this process have lost a core that they still wanted, so far.
  using Count = std::function<int64_t()>;
  // The seconds that others have had of this process's cores so far; nothing where nobody knows.
  using SecondsForOthers = std::function<std::optional<double>()>;
  PreemptionWatch(CoreContention& contention, Count count, SecondsForOthers others)
      : contention_(contention), count_(std::move(count)), others_(std::move(others)) {}

  // Counts preemptions, at most once in kInterval, and notes contention if threads were preempted
  // often since the last time, and others had some of the cores in the last kWindow or more. Costs
  // one atomic load when it does not count.
  void look(Time now);

  static constexpr std::chrono::milliseconds kInterval{20};
  // Fewer preemptions than this may be due to the kernel's own threads.
  static constexpr int kLeast = 2;
  static constexpr int kPerSecond = 50;
  // The share of a core, for kWindow at least, that the kernel's ticks of 10 ms can tell.
  static constexpr double kShareOfOthers = 0.25;
  static constexpr std::chrono::milliseconds kWindow{200};
  // What others had a longer time ago says nothing.
  static constexpr std::chrono::milliseconds kLongestWindow{1000};

 private:
  // Whether they had a share of late; the answer may be kWindow old.
  bool have_others_computed(Time now);

  CoreContention& contention_;
  const Count count_;
  const SecondsForOthers others_;
  // What others had at a time. Guarded by mutex_.
  struct Sample {
    Time time;
    double seconds;
  };
  std::mutex mutex_;
  std::optional<Sample> sample_;
  bool have_they_ = false;  // up to sample_; guarded by mutex_
  // In ticks of the clock. The thread that sets next_ counts.
  std::atomic<Time::rep> next_{0};
  std::atomic<Time::rep> last_time_{0};
  std::atomic<int64_t> last_count_{-1};
};

// The one of this process.
PreemptionWatch& preemption_watch();

}  // namespace cohort::internal
