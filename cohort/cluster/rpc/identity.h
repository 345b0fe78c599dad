// The identity of this process, which its calls carry. It changes while channels are open: a task
// learns the cluster's generation when it registers.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

// Thread safety: any thread.
class Identity {
 public:
  Identity(TaskId task, uint64_t incarnation) : task_(std::move(task)), incarnation_(incarnation) {}

  const TaskId& task() const { return task_; }
  uint64_t incarnation() const { return incarnation_; }
  int64_t generation() const { return generation_.load(std::memory_order_relaxed); }
  void set_generation(int64_t generation) {
    generation_.store(generation, std::memory_order_relaxed);
  }
  Claim claim() const { return {task_, incarnation_, generation()}; }

 private:
  const TaskId task_;
  const uint64_t incarnation_;
  std::atomic<int64_t> generation_{0};
};

}  // namespace cohort::internal::rpc
