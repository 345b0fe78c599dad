// What the analyses of a graph have found so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/graph/evaluation.h"
#include "cohort/transform/graph/graph.h"

namespace cohort::internal {

struct AnalysesRun {
  explicit AnalysesRun(const TransformGraph& graph)
      : results(graph.analyses.size()), values(graph.analyses.size()) {}

  std::vector<AnalysisResult> results;  // of each analysis; its file has its final name
  AnalysisValues values;                // the same for GraphEvaluation
  int64_t rows = 0;                     // that were read
};

// Puts what an analysis has found into the run.
void put_result(AnalysesRun& run, const TransformGraph& graph, size_t analysis,
                AnalysisResult result);

// All results of a run, for another task that sees its files under the same paths.
std::string results_text(const AnalysesRun& run);
// Puts them into a run of the same graph. `source` names where they come from.
// Errors: DataLoss (it is no such text).
void put_results(AnalysesRun& run, const TransformGraph& graph, std::string_view text,
                 std::string_view source);

// What an analysis has found, as values; `vocabulary` is the file that it wrote.
std::vector<std::pair<std::string, ColumnValue>> values_of(
    const AnalysisResult& result, const std::optional<TokenFile>& vocabulary);
// Whether an analysis that writes a vocabulary writes "frequency token" in each line.
bool stores_frequency(const Analysis& analysis);

}  // namespace cohort::internal
