// Keeps outdated callers out: those of an earlier generation of the cluster, and earlier
// incarnations of a task. Membership implements it.
#pragma once

#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::rpc {

// Thread safety: any thread.
class Fence {
 public:
  virtual ~Fence() = default;
  // Asked when the header of a call of a fenced method (service.h) comes, and again before it is
  // handled.
  // Errors: Aborted (the caller is of an earlier generation or another incarnation; names both),
  // Unavailable (this task is behind the caller; the same call succeeds soon).
  virtual void check(const Caller& caller) const = 0;
};

}  // namespace cohort::internal::rpc
