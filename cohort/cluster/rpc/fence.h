// Keeps callers of another time out: those of an earlier generation of the cluster, and earlier
// incarnations of a task. Membership implements it.
#pragma once

#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::rpc {

// Thread safety: any thread.
class Fence {
 public:
  virtual ~Fence() = default;
  // Asked before each call of a fenced method (service.h).
  // Errors: Aborted (the caller is of another generation or incarnation; names both).
  virtual void check(const Caller& caller) const = 0;
};

}  // namespace cohort::internal::rpc
