// The losses that a layer's forward pass adds, stored separately for each replica of a step.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/core/task.h"
#include "cohort/core/tensor.h"

namespace cohort::internal {

// Each call uses the list of the calling thread's replica and task (outside of a step: a separate
// list, that of replica 0).
// Thread safety: any thread.
class ReplicaLosses {
 public:
  void add(const Tensor& loss);
  void clear();
  std::vector<Tensor> get() const;

 private:
  using Owner = std::pair<const Task*, int>;  // and the local replica id
  static Owner calling_owner();

  // Most layers never add a loss; they then pay one load.
  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::map<Owner, std::vector<Tensor>> losses_;
};

}  // namespace cohort::internal
