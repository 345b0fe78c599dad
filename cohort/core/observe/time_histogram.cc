#include "cohort/core/observe/time_histogram.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace cohort {
namespace {

struct Histograms {
  std::mutex mutex;
  std::map<std::string, internal::TimeHistogram, std::less<>> by_name;  // addresses stay
};

// Made at first use and never destroyed: static objects may be timed while the process exits.
Histograms& histograms() {
  static auto* const instance = new Histograms;
  return *instance;
}

}  // namespace

namespace internal {

void TimeHistogram::add(std::chrono::nanoseconds duration) {
  const auto& bounds = monitoring::Timing::kBounds;
  const double seconds = std::chrono::duration<double>(duration).count();
  const auto interval = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  intervals_[static_cast<size_t>(interval)].fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(duration.count(), std::memory_order_relaxed);
}

monitoring::Timing TimeHistogram::read(const std::string& name) const {
  monitoring::Timing timing;
  timing.name = name;
  for (size_t i = 0; i < intervals_.size(); ++i) {
    timing.intervals[i] = intervals_[i].load(std::memory_order_relaxed);
    timing.count += timing.intervals[i];
  }
  timing.seconds = 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
  return timing;
}

TimeHistogram& time_histogram(std::string_view name) {
  Histograms& all = histograms();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_name.find(name);
  return found != all.by_name.end() ? found->second : all.by_name[std::string(name)];
}

}  // namespace internal

namespace monitoring {

std::vector<Timing> timings() {
  Histograms& all = histograms();
  const std::lock_guard lock(all.mutex);
  std::vector<Timing> timings;
  for (const auto& [name, histogram] : all.by_name) {
    Timing timing = histogram.read(name);
    if (timing.count > 0) timings.push_back(std::move(timing));
  }
  return timings;
}

}  // namespace monitoring
}  // namespace cohort
