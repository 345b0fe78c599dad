// What members of a group save beside what the writer has: generators of their replicas, positions
// of their inputs, their parts of partitioned values. Only that travels; what the writer has too
// (mirrored variables) is taken to be the same.
#pragma once

#include <string>
#include <string_view>

#include "cohort/train/saving/checkpoint_save.h"

namespace cohort::internal {

// The names of what the writer has, for the others.
std::string manifest_of(const Snapshot& writers);

// What `own` has and the writer has not. Errors: InvalidArgument (a value of one name has another
// dtype or shape at the writer: the programs differ; names it), DataLoss (no manifest).
std::string contribution_to(std::string_view manifest, const Snapshot& own);

// Adds it to the writer's. Of several members that bring a value of one name the first counts.
// Errors: DataLoss (malformed).
void add_contribution(Snapshot& writers, std::string_view contribution);

}  // namespace cohort::internal
