// For tests: one shard of a store.
#pragma once

#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

inline VariableStore::Value read_one(const VariableStore& store, const ShardKey& key,
                                     int64_t known_version = -1) {
  return store.read_together({{key, known_version}})[0];
}

}  // namespace cohort::internal
