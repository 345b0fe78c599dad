// Structures that replicas or tasks combine leaf by leaf: leaf 1 of one must be leaf 1 of all.
#pragma once

#include <string_view>

#include "cohort/collective/sync_group.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/core/replica.h"

namespace cohort::internal {

// Compares the keys and the numbers of members on all tasks. A leaf, which has none, and a
// structure without leaves, of which nothing is combined, need no call.
// COLLECTIVE over the tasks. Errors: those of a Communicator's calls; FailedPrecondition (shows
// both forms).
void agree_on_form(collective::SyncGroup& group, const Structure& value, std::string_view call);

// The same in a step. COLLECTIVE over the replicas. Errors: also those of SyncGroup::meet.
void agree_on_form(Replica& replica, const Structure& value, const char* call);

}  // namespace cohort::internal
