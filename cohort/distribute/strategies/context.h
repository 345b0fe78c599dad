// The context of the calling code: which strategy is current, and whether the code runs in a
// replica or across replicas.
//
//   auto scope = strategy.scope();             // cross-replica context of `strategy`
//   in_cross_replica_context() == true;
//   strategy.run([](ReplicaContext& context) { context.replica_id_in_sync_group(); });
#pragma once

#include "cohort/core/export.h"
#include "cohort/distribute/step/scope.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

// The strategy of the innermost scope or step, of experimental_set_strategy, or the default one.
COHORT_API Strategy get_strategy();
// Whether get_strategy() returns anything but the default strategy.
COHORT_API bool has_strategy();
// True in a scope, in merge_call's function and in update's function; false in a step.
COHORT_API bool in_cross_replica_context();
// The replica that runs the calling code: in a step its own, outside of every scope the default
// strategy's; nullptr in cross-replica context.
COHORT_API ReplicaContext* get_replica_context();
// Makes `strategy` current wherever no scope is open, in place of the one set before; nullptr
// restores the default strategy.
// Errors: FailedPrecondition (inside a scope).
COHORT_API void experimental_set_strategy(const Strategy* strategy);

}  // namespace cohort::distribute
