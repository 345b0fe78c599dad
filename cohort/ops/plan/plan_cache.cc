#include "cohort/ops/plan/plan_cache.h"

#include <algorithm>

#include "cohort/core/time_histogram.h"

namespace cohort::internal::plan {

std::shared_ptr<const Compiled> PlanCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  return find_locked(key);
}

std::shared_ptr<const Compiled> PlanCache::find_locked(const Key& key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.wants == key.wants && key.input == entry.input;
  });
  if (found == entries_.end()) return nullptr;
  if (found != entries_.begin()) entries_.splice(entries_.begin(), entries_, found);
  ++entries_.front().hits;
  return entries_.front().compiled;
}

std::shared_ptr<const Compiled> PlanCache::compile(const Key& key) {
  const std::lock_guard lock(mutex_);  // one replica compiles for all
  if (auto found = find_locked(key)) return found;
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
  entries_.push_front({request.input, key.wants, compiled, 0});
  if (entries_.size() > kMost) entries_.pop_back();
  return compiled;
}

std::vector<PlanCache::Entry> PlanCache::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace cohort::internal::plan
