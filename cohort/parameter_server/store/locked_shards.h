// Locks of several shards at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// In the order in which updates lock theirs.
class VariableStore::LockedTogether {
 public:
  explicit LockedTogether(const std::vector<ShardPtr>& shards) {
    std::vector<std::mutex*> mutexes;
    for (const ShardPtr& shard : shards) mutexes.push_back(&shard->mutex);
    std::sort(mutexes.begin(), mutexes.end(), std::less<>());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (std::mutex* mutex : mutexes) locks_.emplace_back(*mutex);
  }

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
};

}  // namespace cohort::internal
