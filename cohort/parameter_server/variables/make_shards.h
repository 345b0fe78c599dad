// The initial values of variables on ps tasks.
#pragma once

#include "cohort/distribute/variable_spec.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

// Makes the shards on their ps tasks, unless they are there. Values that are known by their
// description are made there; others here, shard by shard, and sent.
// Errors: those of make_initial_value and StoreClient.
void make_shards(const ServedVariable& variable, const distribute::VariableInitializer& initializer,
                 const StoreClient& store);

}  // namespace cohort::internal
