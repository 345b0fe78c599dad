// The initial values of variables on ps tasks.
#pragma once

#include "cohort/distribute/core/variable_spec.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

// Makes the shards on their ps tasks, unless they are there. Values that are known by their
// description are made there, and those of a checkpoint that was restored before are read there, if
// the ps tasks find it; others are made here, shard by shard, and sent.
// Errors: those of make_initial_value, StoreClient and PendingValue.
void make_shards(const ServedVariable& variable, const distribute::VariableInitializer& initializer,
                 const StoreClient& store);

}  // namespace cohort::internal
