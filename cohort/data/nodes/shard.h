// Dividing elements, as rewrites of a graph do it; users call Dataset::shard.
#pragma once

#include <cstdint>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// What a shard asks of its input, where it has an element at all. While reading, InvalidArgument:
enum class ShardRequirement {
  kNothing,
  kElementForEach,  // fewer elements than shards: on the shards that got one, after which others
                    // end
  kFileForEach,     // the same, on all shards, before the first element
};

// Errors: InvalidArgument (num_shards below 1, index outside [0, num_shards)).
DataNodePtr make_shard(DataNodePtr input, int64_t num_shards, int64_t index,
                       ShardRequirement requirement);

// A place to be divided (ShardingRole::kShardHint); all elements pass.
DataNodePtr make_shard_hint(DataNodePtr input);

}  // namespace cohort::internal
