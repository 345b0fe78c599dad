// Analyses of a dataset whose shares the tasks of a group read, each its own.
#pragma once

#include "cohort/collective/sync_group.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/passes/analyses_run.h"
#include "cohort/transform/passes/phase_part.h"

namespace cohort::internal {

// Makes the passes of a graph as run_analyses does, of all shares together; one may be empty. The
// first task merges what the others have found, which comes in blocks (saved_part.h), and writes
// the files; the others must see its directory under the same path. While tasks read, they look
// about every second whether the others do, so that none waits for one that has failed.
// COLLECTIVE over the tasks. Errors, in all tasks: those of read_part and finish_part in any of
// them (names it); those of a Communicator's calls.
AnalysesRun run_analyses_of_tasks(const TransformGraph& graph, const data::Dataset& share,
                                  const PassOptions& options, collective::SyncGroup& group);

}  // namespace cohort::internal
