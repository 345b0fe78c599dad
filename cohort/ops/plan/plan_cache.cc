#include "cohort/ops/plan/plan_cache.h"

#include <algorithm>
#include <iterator>

#include "cohort/core/time_histogram.h"

namespace cohort::internal::plan {

std::shared_ptr<const Compiled> PlanCache::find(const Key& key) {
  Plan::Passes dropped;
  const std::lock_guard lock(mutex_);
  return find_locked(key, dropped);
}

std::shared_ptr<const Compiled> PlanCache::find_locked(const Key& key, Plan::Passes& dropped) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.wants == key.wants && key.input == entry.input;
  });
  if (found == entries_.end()) return nullptr;
  if (found != entries_.begin()) put_first(found, dropped);
  ++entries_.front().hits;
  return entries_.front().compiled;
}

// The first kMostWithMemory keep the memory of their passes, and no others: one comes into their number, one goes.
void PlanCache::put_first(std::list<Entry>::iterator entry, Plan::Passes& dropped) {
  entries_.splice(entries_.begin(), entries_, entry);
  if (entry->compiled->plan != nullptr) entry->compiled->plan->keep_passes();
  if (entries_.size() <= kMostWithMemory) return;
  const Compiled& behind = *std::next(entries_.begin(), kMostWithMemory)->compiled;
  if (behind.plan != nullptr) dropped = behind.plan->keep_no_passes();
}

std::shared_ptr<const Compiled> PlanCache::compile(const Key& key) {
  Plan::Passes dropped;
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
