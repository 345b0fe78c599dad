#include "cohort/transform/passes/run_analyses.h"

namespace cohort::internal {

AnalysesRun run_analyses(const TransformGraph& graph, const PassOptions& options,
                         FunctionRef<PhasePart(int phase, const AnalysesRun& run)> read) {
  AnalysesRun run(graph);
  for (int phase = 0; phase < graph.num_phases; ++phase) {
    finish_part(graph, phase, read(phase, run), options, run);
  }
  return run;
}

AnalysesRun run_analyses(const TransformGraph& graph, const data::Dataset& dataset,
                         const PassOptions& options) {
  return run_analyses(graph, options, [&](int phase, const AnalysesRun& run) {
    return read_part(graph, phase, run, dataset, options);
  });
}

}  // namespace cohort::internal
