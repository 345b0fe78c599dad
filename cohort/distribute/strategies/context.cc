#include "cohort/distribute/strategies/context.h"

#include "cohort/distribute/core/context_stack.h"

namespace cohort::distribute {

Strategy get_strategy() { return Strategy(internal::current_core()); }

bool has_strategy() { return !internal::in_default_strategy(); }

bool in_cross_replica_context() { return internal::current_replica() == nullptr; }

// Every replica is a ReplicaContext.
ReplicaContext* get_replica_context() {
  return static_cast<ReplicaContext*>(internal::current_replica());
}

void experimental_set_strategy(const Strategy* strategy) {
  internal::set_program_strategy(strategy != nullptr ? strategy->core() : nullptr);
}

}  // namespace cohort::distribute
