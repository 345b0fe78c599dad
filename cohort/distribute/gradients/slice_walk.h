// The parts of a pass over all elements of an update's targets: of replicas, and of their threads.
#pragma once

#include <cstdint>
#include <span>

#include "cohort/collective/slices.h"
#include "cohort/core/function_ref.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/gradients/gradient_exchange.h"

namespace cohort::internal {

// Part `number` of so many equal ones.
struct WorkPart {
  int number = 0;
  int of = 1;
};
inline constexpr WorkPart kWholeWork;

// What one of `threads` threads does of it.
struct ThreadPart {
  WorkPart part;
  int thread = 0;
  int threads = 1;

  // Its part of so many elements.
  collective::SliceRange slice_of(int64_t total) const;
};

int64_t size_of(const UpdateTarget& target);

// Calls visit(i, elements of target i) for this part of all elements of all targets.
void walk(std::span<const UpdateTarget> targets, const ThreadPart& part,
          FunctionRef<void(size_t, collective::SliceRange)> visit);

// Elements that the update of the replica's own gradients touches.
int64_t elements_of(const Contribution& mine, const optim::UpdateRule& rule);

// How many intra-op threads are worth their cost in a walk over this part of so many elements.
int threads_for(int64_t elements, const WorkPart& part);

}  // namespace cohort::internal
