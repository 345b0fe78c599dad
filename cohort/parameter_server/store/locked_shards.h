// Locks of several shards at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::internal {

// The mutexes are locked in the order in which updates lock theirs. One that is named twice is
// locked once.
class LockedTogether {
 public:
  explicit LockedTogether(std::vector<std::mutex*> mutexes) {
    std::sort(mutexes.begin(), mutexes.end(), std::less<>());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (std::mutex* mutex : mutexes) locks_.emplace_back(*mutex);
  }

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
};

}  // namespace cohort::internal
