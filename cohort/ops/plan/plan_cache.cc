#include "cohort/ops/plan/plan_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cohort/core/observe/time_histogram.h"

namespace cohort::internal::plan {

std::shared_ptr<const Compiled> PlanCache::find(const Key& key) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  return find_locked(key, dropped);
}

std::shared_ptr<const Compiled> PlanCache::find_locked(const Key& key, Dropped& dropped) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.wants == key.wants && key.input == entry.input;
  });
  if (found == entries_.end()) return nullptr;
  if (found != entries_.begin()) put_first(found, dropped);
  ++entries_.front().hits;
  return entries_.front().compiled;
}

void PlanCache::put_first(std::list<Entry>::iterator entry, Dropped& dropped) {
  entries_.splice(entries_.begin(), entries_, entry);
  int plans = 0;
  int64_t bytes = 0;
  for (const Entry& one : entries_) {
    const Plan* const plan = one.compiled->plan.get();
    if (plan == nullptr) continue;
    bytes += plan->bytes_of_passes();
    if (plans++ < kAlwaysWithMemory || bytes <= most_bytes_) {
      plan->keep_passes();
    } else if (Plan::Passes passes = plan->keep_no_passes(); !passes.empty()) {
      dropped.push_back(std::move(passes));
    }
  }
}

std::shared_ptr<const Compiled> PlanCache::compile(const Key& key) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);  // one replica compiles for all
  if (auto found = find_locked(key, dropped)) return found;
  Request request{.operations = operations_,
                  .input = key.input.vec(),
                  .records = key.wants != 0,
                  .wants_input = (key.wants & 1) != 0};
  uint64_t wants = key.wants;
  for (const Operation& operation : operations_) {
    for (size_t i = 0; i < num_parameters(operation); ++i) {
      request.wants_parameters.push_back(((wants >>= 1) & 1) != 0);
    }
  }
  static TimeHistogram& times = time_histogram("plan_creation");
  const TimedScope timed(times);
  auto compiled = std::make_shared<const Compiled>(Plan::compile(request));
  entries_.push_back({request.input, key.wants, compiled, 0});
  put_first(std::prev(entries_.end()), dropped);
  if (entries_.size() > kMost) entries_.pop_back();
  return compiled;
}

std::vector<PlanCache::Entry> PlanCache::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace cohort::internal::plan
