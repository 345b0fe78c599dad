// What one replica brings to an update, in the form that the pass over memory takes.
#pragma once

#include <span>
#include <vector>

#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/sparse_rows.h"

namespace cohort::internal {

class LocalVariable;

// Elements that a pass takes at a time: the sum of a block stays in the first-level cache until it
// is applied.
inline constexpr int64_t kUpdateBlock = 2048;

// Whether all of its components are in the host's memory.
bool on_host(const LocalVariable& variable);

// `gradient` detached, on the host, contiguous or sparse rows.
// Errors: InvalidArgument (shape or dtype, naming variable and replica).
Tensor usable_gradient(const Tensor& gradient, const distribute::Variable& variable, int replica);

struct Contribution {
  Contribution(const GradientExchange& through, int of_replica, std::span<Tensor> brought = {});

  const GradientExchange* exchange;
  int replica;
  // Usable ones, undefined where there is none; one a target.
  std::span<Tensor> gradients;
  // Of the sparse ones among them, by place; empty where all are dense.
  std::vector<SparseRows> sparse;
};

// What all replicas of a task pass to a meeting: Contribution*.
using Contributions = std::span<void* const>;
inline Contribution& of_replica(Contributions all, size_t replica) {
  return *static_cast<Contribution*>(all[replica]);
}

// Makes the gradients of a target dense where not all replicas have sparse ones; or, `always`, all.
void densify(Contributions all, bool always);

}  // namespace cohort::internal
