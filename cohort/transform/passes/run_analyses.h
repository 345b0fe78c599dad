// Makes the passes of a graph, one a phase, and finds what its analyses ask for.
#pragma once

#include "cohort/core/function_ref.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/passes/analyses_run.h"
#include "cohort/transform/passes/phase_part.h"

namespace cohort::internal {

// `read` brings the part of all rows for a phase; `run` holds the results of the phases before.
// Errors: those of `read` and of finish_part.
AnalysesRun run_analyses(const TransformGraph& graph, const PassOptions& options,
                         FunctionRef<PhasePart(int phase, const AnalysesRun& run)> read);

// Reads the dataset here. Errors: those of read_part and finish_part.
AnalysesRun run_analyses(const TransformGraph& graph, const data::Dataset& dataset,
                         const PassOptions& options);

}  // namespace cohort::internal
