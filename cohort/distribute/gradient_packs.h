// Adds up gradients while the backward pass is still running.
//
// Variables are grouped into packs, the last ones first, in the order in which the backward pass
// reaches them. A replica that has finished its own backward pass adds up the packs for which all
// replicas have passed their gradients, instead of only waiting for the others. The update adds up
// the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/distribute/variable.h"

namespace cohort::internal {

// Thread safety: begin by one thread, while no replica is between it and the update; the rest by
// each replica on its own thread.
class GradientPacks {
 public:
  GradientPacks(const std::vector<distribute::Variable>& variables, size_t replicas,
                int64_t bytes_per_pack);

  size_t num_packs() const { return packs_.size(); }
  size_t num_replicas() const { return num_replicas_; }

  // Forgets the previous step.
  void begin();
  // The replica's gradient of a variable, by the variable's index: on the CPU, of the variable's
  // shape and dtype, contiguous or sparse. Undefined gradients are not passed.
  void bring(size_t replica, size_t variable, Tensor gradient);
  // Called once per replica, when its backward pass is over: adds up the packs that are complete by
  // now, except those that another replica is adding up. The last replica to arrive does nothing,
  // since no other is left to wait for.
  void reduce_complete();
  // Frees the memory of the replica's gradients; after the update.
  void forget(size_t replica);

  // The replica's gradients, by variable; undefined if there is none.
  std::span<Tensor> gradients(size_t replica) {
    return {gradients_.data() + replica * num_variables_, num_variables_};
  }
  const Tensor& gradient(size_t replica, size_t variable) const {
    return gradients_[replica * num_variables_ + variable];
  }
  // Whether sum() has been made; meaningful once every replica has returned from reduce_complete.
  bool reduced(size_t variable) const { return packs_[pack_of_[variable]]->reduced; }
  // The sum of all replicas' gradients, in replica order.
  const Tensor& sum(size_t variable) const { return sums_[variable]; }

 private:
  struct Pack {
    std::vector<size_t> variables;
    std::atomic<size_t> missing{0};  // gradients, counted over all replicas
    std::atomic<bool> taken{false};
    bool reduced = false;  // written by the replica that has taken it
  };

  // Returns false if a gradient is not a dense one on the host.
  bool reduce(const Pack& pack);

  size_t num_variables_;
  size_t num_replicas_;
  std::vector<std::unique_ptr<Pack>> packs_;
  std::vector<size_t> pack_of_;
  std::atomic<size_t> finished_{0};  // replicas whose pass is over
  std::vector<Tensor> gradients_;    // [replica][variable]
  // Separate memory, since a gradient's storage may also be that of another variable's gradient.
  // Allocated at first use.
  std::vector<Tensor> sums_;
};

}  // namespace cohort::internal
