// One replica's gradients for an update, in the form that the pass over memory reads.
#pragma once

#include <span>

#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/gradients/sparse_rows.h"

namespace cohort::internal {

class LocalVariable;

// The number of elements that a pass processes at a time: the sum of a block stays in the
// first-level cache until it is applied.
inline constexpr int64_t kUpdateBlock = 2048;

// Whether all components are in the host's memory.
bool on_host(const LocalVariable& variable);

// The place where gradients of the replicas are added up.
enum class AddedUp {
  kInTask,     // there are no other tasks
  kOnHosts,    // between tasks, in the memory of hosts
  kOnDevices,  // between tasks, in that of devices, where the variable is there
};

// Returns `gradient` detached and either contiguous or sparse. For a variable on the host, and
// where hosts add up, it is on the host, and sparse only as rows; where devices do, it is dense.
// Errors: InvalidArgument (shape or dtype, naming variable and replica).
Tensor usable_gradient(const Tensor& gradient, const distribute::Variable& variable, int replica,
                       AddedUp where = AddedUp::kInTask);

struct Contribution {
  Contribution(const GradientExchange& through, int of_replica)
      : Contribution(through, of_replica, {}, {}) {}
  // `rows` is as long as `brought`. The rows of sparse gradients are read into it here.
  Contribution(const GradientExchange& through, int of_replica, std::span<Tensor> brought,
               std::span<SparseRows> rows);

  const GradientExchange* exchange;
  int replica;
  // Usable gradients (see above), one per target; undefined if there is none.
  std::span<Tensor> gradients;
  // The rows of the host's sparse gradients, at the same indices; of others without meaning.
  std::span<const SparseRows> sparse;
};

// What all replicas of a task pass to a barrier; each element is a Contribution*.
using Contributions = std::span<void* const>;
inline Contribution& of_replica(Contributions all, size_t replica) {
  return *static_cast<Contribution*>(all[replica]);
}

// Makes the gradients of a target dense unless all replicas have sparse ones; with `always`, makes
// all of them dense.
void densify(Contributions all, bool always);

}  // namespace cohort::internal
