// The rows of a table that a batch needs, each once; and the copying and adding of rows.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

struct DistinctRows {
  Tensor ids;        // [u] of int64, strictly ascending
  Tensor positions;  // [n] of int64: where in `ids` each of the given ids is
};

// Shapes: ids [n] of int64, contiguous, not negative.
DistinctRows distinct_rows(const Tensor& ids);

// The place of each of `ids` in `sorted`; both [..] of int64 and strictly ascending. -1: it is not
// there.
Tensor positions_in(const Tensor& sorted, const Tensor& ids);

// table[ids], a copy. Shapes: table [rows, ..], contiguous; ids [n] of int64, within the rows.
Tensor gather_rows(const Tensor& table, const Tensor& ids);

// The sum of those rows that have a position: result[positions[i]] += rows[i], in the order of i.
// Shapes: rows [n, ..]; positions [n] of int64, below `count` -> [count, ..].
Tensor sum_rows(const Tensor& rows, const Tensor& positions, int64_t count);

}  // namespace cohort::internal
