// The plans of one run of operations, for the shapes that came last.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cohort/ops/plan/plan.h"

namespace cohort::internal::plan {

// Thread safety: any thread.
class PlanCache {
 public:
  // most_bytes: how much memory passes keep, but that the latest four always keep theirs.
  explicit PlanCache(std::vector<Operation> operations, int64_t most_bytes = int64_t{1} << 28)
      : operations_(std::move(operations)), most_bytes_(most_bytes) {}

  // What distinguishes plans. `wants`: whose gradients: bit 0 the input's, then the parameters'; 0
  // where no backward pass follows.
  struct Key {
    at::IntArrayRef input;
    uint64_t wants = 0;
  };
  static constexpr size_t kMostParameters = 63;

  // nullptr where it is not known yet whether there is one.
  std::shared_ptr<const Compiled> find(const Key& key);
  // Finds a plan, or makes it.
  std::shared_ptr<const Compiled> compile(const Key& key);

  struct Entry {
    Shape input;
    uint64_t wants = 0;
    std::shared_ptr<const Compiled> compiled;
    int64_t hits = 0;
  };
  // The plans that are kept, the latest first.
  std::vector<Entry> entries() const;

 private:
  // The most plans that are kept: shapes of inputs may vary, sequences of many lengths say.
  static constexpr size_t kMost = 16;
  // The number of plans at the front whose passes always keep their memory, which is that of a
  // whole batch: a training loop has a full and a partial batch, with and without gradients.
  static constexpr int kAlwaysWithMemory = 4;

  using Dropped = std::vector<Plan::Passes>;
  // Both with the lock. dropped: gets what the caller destroys without it.
  std::shared_ptr<const Compiled> find_locked(const Key& key, Dropped& dropped);
  void put_first(std::list<Entry>::iterator entry, Dropped& dropped);

  const std::vector<Operation> operations_;
  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace cohort::internal::plan
