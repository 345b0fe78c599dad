// Tensors that a layer keeps for each replica of a step by itself: the losses that its forward pass
// adds, the state in which a sequence has left it.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Each call uses the list of the calling thread's replica and task (outside of a step: a separate
// list, that of replica 0).
// Thread safety: any thread.
class ReplicaTensors {
 public:
  void add(const Tensor& tensor);
  void set(std::vector<Tensor> tensors);
  void clear();
  std::vector<Tensor> get() const;
  // The lists of all replicas and tasks. Outside of steps.
  void clear_all();

 private:
  using Owner = std::pair<const Task*, int>;  // and the local replica id
  static Owner calling_owner();

  // Most layers never keep any; they then pay one load.
  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::map<Owner, std::vector<Tensor>> tensors_;
};

}  // namespace cohort::internal
