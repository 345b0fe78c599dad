// The table of a model's layers that summary() prints.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/structure/spec.h"

namespace cohort::internal {

struct SummaryRow {
  std::string layer;         // "dense (Dense)"
  std::string output_shape;  // "(None, 10)"
  std::string parameters;
  std::vector<std::string> connected_to = {};  // "dense[0][0]"
};

struct SummaryTable {
  std::vector<SummaryRow> rows;
  bool has_connections = false;  // else a chain of layers, whose order says it all
};

// "(None, 26, 26, 32)"; of several tensors a list.
std::string shapes_text(const std::vector<TensorSpec>& outputs);

}  // namespace cohort::internal
