// Applies a part of a graph to batches.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/transform/graph/graph.h"

namespace cohort::internal {

// What analyses have found: for each, its results by name. Empty: not known yet.
using AnalysisValues = std::vector<std::vector<std::pair<std::string, ColumnValue>>>;

// Computes some steps of a graph from a batch. Steps that depend on statistics alone are computed
// once.
// Thread safety: any number of threads may apply it.
class GraphEvaluation {
 public:
  // `graph` must outlive it. `values` holds what `steps` need.
  // Errors: Internal (it does not), what operations on statistics throw.
  GraphEvaluation(const TransformGraph& graph, std::vector<int> steps,
                  const AnalysisValues& values);

  // The columns of the dataset that are needed.
  const std::vector<std::string>& columns() const { return columns_; }
  // The values of the steps, in their order. `batch` is a dict of columns; others than columns()
  // are not looked at.
  // Errors: InvalidArgument (no dict; a column is missing or of another type; names it), what
  // operations throw (with the step's operation in front).
  std::vector<ColumnValue> operator()(const Structure& batch) const;

 private:
  struct Planned {
    int step;
    const TransformGraph::Step* definition;
  };

  const TransformGraph& graph_;
  const std::vector<int> steps_;
  std::vector<std::string> columns_;
  std::vector<Planned> plan_;              // depends on the batch
  std::vector<ColumnValue> known_values_;  // of all steps; of plan_'s nothing
};

}  // namespace cohort::internal
