// Gradients that are added up while the backward pass goes on.
//
// Variables are grouped into packs, the last ones first, as the backward pass reaches them. A
// replica whose own pass is over adds up the packs that all replicas have brought by then, in the
// time in which it would only wait for the others. What is left over is added up in the update.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/distribute/variable.h"

namespace cohort::internal {

// Thread safety: begin by one thread while no replica is between it and the update; the rest by
// each replica for itself.
class GradientPacks {
 public:
  GradientPacks(const std::vector<distribute::Variable>& variables, size_t replicas,
                int64_t bytes_per_pack);

  size_t num_packs() const { return packs_.size(); }

  // Forgets the step before.
  void begin();
  // This replica's gradient of a variable, by its place: on the CPU, of the variable's shape and
  // dtype, contiguous or sparse. Undefined ones are not brought.
  void bring(size_t replica, size_t variable, Tensor gradient);
  // Once for each replica, when its pass is over: adds up the packs that are complete by now, but
  // for those that somebody else does. The last to come does nothing: nobody is left to wait for.
  void reduce_complete();
  // Gives back the memory of what the replica brought; after the update.
  void forget(size_t replica);

  // What the replica brought, by variable; undefined where nothing.
  std::span<Tensor> gradients(size_t replica) {
    return {gradients_.data() + replica * num_variables_, num_variables_};
  }
  const Tensor& gradient(size_t replica, size_t variable) const {
    return gradients_[replica * num_variables_ + variable];
  }
  // Whether sum() has been made; meaningful once every replica has returned from reduce_complete.
  bool reduced(size_t variable) const { return packs_[pack_of_[variable]]->reduced; }
  // Of all replicas' gradients, in replica order.
  const Tensor& sum(size_t variable) const { return sums_[variable]; }

 private:
  struct Pack {
    std::vector<size_t> variables;
    std::atomic<size_t> missing{0};  // gradients of all replicas
    std::atomic<bool> taken{false};
    bool reduced = false;  // written by who has taken it
  };

  // False where a gradient is no dense one of the host's.
  bool reduce(const Pack& pack);

  size_t num_variables_;
  size_t num_replicas_;
  std::vector<std::unique_ptr<Pack>> packs_;
  std::vector<size_t> pack_of_;
  std::atomic<size_t> finished_{0};  // replicas whose pass is over
  std::vector<Tensor> gradients_;    // [replica][variable]
  // Of our own: a gradient's storage may be another variable's, too. Made at the first.
  std::vector<Tensor> sums_;
};

}  // namespace cohort::internal
