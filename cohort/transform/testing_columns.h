// For tests of transforms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/testing_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/graph/batch_columns.h"
#include "cohort/transform/graph/evaluation.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/output/analyze.h"

namespace cohort::transform {

inline std::vector<double> numbers(const Structure& column) {
  const Tensor values = column.tensor().to(at::kDouble).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}
inline std::vector<double> numbers(const Leaf& leaf) { return numbers(Structure(leaf)); }

inline std::vector<std::string> texts(const Leaf& leaf) { return leaf.strings().to_vector(); }

// The rows of a ragged column of numbers.
inline std::vector<std::vector<double>> rows(const Structure& column) {
  const RaggedTensor ragged = column;
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < ragged.nrows(); ++i) rows.push_back(numbers(ragged[i]));
  return rows;
}
inline std::vector<std::vector<std::string>> text_rows(const Structure& column) {
  const RaggedTensor ragged = column;
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < ragged.nrows(); ++i) rows.push_back(texts(ragged[i]));
  return rows;
}

// Batches of these columns, two rows each.
inline data::Dataset batches(const Structure& columns) {
  return data::Dataset::from_tensor_slices(columns).batch(2);
}

// What `function` makes of `columns`, analysed in batches and applied to all rows at once. A file is
// written only where there is something to analyse.
inline Structure transformed(const Structure& columns, const PreprocessingFunction& function) {
  const internal::TransformGraph graph =
      internal::trace(function, internal::column_types(batches(columns).element_spec()));
  if (graph.analyses.empty()) {
    std::vector<int> steps;
    for (const auto& [name, step] : graph.outputs) steps.push_back(step);
    const auto values = internal::GraphEvaluation(graph, steps, {})(columns);
    Structure::Dict outputs;
    for (size_t i = 0; i < values.size(); ++i) {
      outputs.emplace_back(graph.outputs[i].first, internal::column_structure(values[i]));
    }
    return dict(outputs);
  }
  const internal::TemporaryFolder folder;
  return analyze_dataset(batches(columns), function, folder / "output")
      .transform_raw_features(columns);
}

}  // namespace cohort::transform
