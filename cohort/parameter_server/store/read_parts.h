// What a ps task reads of a checkpoint itself.
#pragma once

#include <optional>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/parameter_server/store/kept_message.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// New values for shards of `store`, and for shards that it lacks; it does not change. Nothing where
// no checkpoint, or another one, has that prefix here.
// Errors: InvalidArgument (the prefix is not absolute; a part that does not fit its shard),
// NotFound (no such shard, or name), DataLoss.
std::optional<std::vector<VariableStore::NewValue>> read_parts(FileSystem& files,
                                                               const VariableStore& store,
                                                               const ReadPartsRequest& request);

}  // namespace cohort::internal
