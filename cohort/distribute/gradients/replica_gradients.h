// The gradients that the replicas of a task have passed in a step.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Thread safety: each replica's own on its thread; those of all while the replicas wait.
class ReplicaGradients {
 public:
  ReplicaGradients(size_t variables, size_t replicas)
      : num_variables_(variables), num_replicas_(replicas), gradients_(replicas * variables) {}

  size_t num_replicas() const { return num_replicas_; }

  // On the CPU, of the variable's shape and dtype, contiguous or sparse.
  void bring(size_t replica, size_t variable, Tensor gradient) {
    of(replica)[variable] = std::move(gradient);
  }
  // Frees the memory of the replica's gradients.
  void forget(size_t replica) {
    for (Tensor& gradient : of(replica)) gradient.reset();
  }

  // A replica's gradients by variable; undefined if there is none.
  std::span<Tensor> of(size_t replica) {
    return {gradients_.data() + replica * num_variables_, num_variables_};
  }
  const Tensor& gradient(size_t replica, size_t variable) const {
    return gradients_[replica * num_variables_ + variable];
  }

 private:
  size_t num_variables_;
  size_t num_replicas_;
  std::vector<Tensor> gradients_;  // [replica][variable]
};

}  // namespace cohort::internal
