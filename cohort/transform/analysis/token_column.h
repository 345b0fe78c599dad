// The tokens of a column of strings or integers, and the weights of a second column.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/transform/analysis/accumulator.h"

namespace cohort::internal {

// The tokens of one batch after another. Thread safety: none.
class TokensOfColumn {
 public:
  // The tokens, which live until the next call, as long as the column does; integers as decimal
  // digits.
  // Errors: InvalidArgument (floating point numbers, bool; row_splits that do not fit).
  std::span<const std::string_view> take(const ColumnBatch& column);

 private:
  std::string digits_;
  std::vector<std::string_view> views_;
};

// A weight for each value of `column`: those of `weights`, or each row's for all of its values.
// Dense weights of ragged values, as many as rows, are those of rows.
// Errors: InvalidArgument (another number of weights; no numbers).
std::vector<double> weights_of_values(const ColumnBatch& column, const ColumnBatch& weights);

}  // namespace cohort::internal
