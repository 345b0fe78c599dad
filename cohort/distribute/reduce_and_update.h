// The heart of a training step: gradients of all replicas in, new values of all variables out, in
// one pass over memory.
#pragma once

#include <span>
#include <vector>

#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/variable.h"
#include "cohort/optim/update_rule.h"

namespace cohort::internal {

// A variable and its optimizer slots, in the rule's order; all of one shape and dtype, all made
// under one strategy.
struct UpdateTarget {
  distribute::Variable variable;
  std::vector<distribute::Variable> slots;
};

class GradientPacks;

struct UpdateOptions {
  double learning_rate = 0;
  // Updates applied before this one.
  int64_t iteration = 0;
  // False: the gradients are equal on all replicas already; replica 0's are used.
  bool aggregate_gradients = true;
  // What has been added up before, for the same targets on every replica; nullptr: nothing.
  const GradientPacks* packs = nullptr;
};

// `gradient` as the pass (and packs) can use it: detached, on the host, contiguous or sparse rows.
// Errors: InvalidArgument (shape or dtype, naming variable and replica).
Tensor usable_gradient(const Tensor& gradient, const distribute::Variable& variable, int replica);

// Sums the replicas' gradients and applies `rule` to every target.
//
// Each replica's thread takes one slice of all elements: it adds up the gradients in replica order
// (the same bits on every run), applies the rule to the slice, and copies it to further components.
// gradients[i], of targets[i]'s shape, belongs to the calling replica. Sparse ones, of rows, stay
// sparse if all replicas' are (a rule that leaves elements with a zero gradient alone then touches
// those rows only), bitwise as if they were dense. An undefined one counts as zeros; where all
// replicas' are undefined the target is skipped. Collective: every replica, with the same targets.
// Returns when all have finished. Errors: InvalidArgument (shape, dtype or device of a gradient,
// naming variable and replica), FailedPrecondition and DeadlineExceeded as ReplicaContext.
void reduce_and_update(distribute::ReplicaContext& context, std::span<const Tensor> gradients,
                       std::span<const UpdateTarget> targets, const optim::UpdateRule& rule,
                       const UpdateOptions& options);

}  // namespace cohort::internal
