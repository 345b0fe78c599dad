#include "cohort/core/host/preemption_watch.h"

#include <sys/resource.h>

namespace cohort::internal {

void PreemptionWatch::look(Time now) {
  const Time::rep time = now.time_since_epoch().count();
  Time::rep next = next_.load(std::memory_order_relaxed);
  const Time::rep interval = Time::duration(kInterval).count();
  if (time < next || !next_.compare_exchange_strong(next, time + interval)) return;
  const int64_t count = count_();
  const int64_t before = last_count_.exchange(count);
  const auto passed = Time::duration(time - last_time_.exchange(time));
  if (before < 0) return;
  const double seconds = std::chrono::duration<double>(passed).count();
  const int64_t more = count - before;
  if (more >= kLeast && static_cast<double>(more) >= kPerSecond * seconds) contention_.note(now);
}

PreemptionWatch& preemption_watch() {
  // Never destroyed: threads that look may outlive the program's statics.
  static auto* const watch = new PreemptionWatch(core_contention(), [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_nivcsw};
  });
  return *watch;
}

}  // namespace cohort::internal
