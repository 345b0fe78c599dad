#include "cohort/core/host/preemption_watch.h"

#include <sys/resource.h>

#include "cohort/core/host/time_of_others.h"

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
  const bool often = more >= kLeast && static_cast<double>(more) >= kPerSecond * seconds;
  // A few preemptions suffice to go on watching, so that many are understood at once.
  if (more > 0 && have_others_computed(now) && often) contention_.note(now);
}

bool PreemptionWatch::have_others_computed(Time now) {
  const std::lock_guard lock(mutex_);
  if (sample_ && now - sample_->time < kWindow) return have_they_;
  const std::optional<double> seconds = others_();
  if (!seconds) return true;  // preemptions are all that is known
  const auto before = std::exchange(sample_, Sample{now, *seconds});
  const std::chrono::duration<double> window = now - (before ? before->time : now);
  have_they_ = before && window <= kLongestWindow &&
               *seconds - before->seconds >= kShareOfOthers * window.count();
  return have_they_;
}

PreemptionWatch& preemption_watch() {
  // Never destroyed: threads that look may outlive the program's statics.
  static auto* const watch = new PreemptionWatch(
      core_contention(),
      [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return int64_t{usage.ru_nivcsw};
      },
      seconds_for_others);
  return *watch;
}

}  // namespace cohort::internal
