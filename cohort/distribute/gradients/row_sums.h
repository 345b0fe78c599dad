// Sums of rows on a device, such as the gradients of the rows of an embedding.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Rows of a table and their sums. There are as many as values were given, since the host would have
// to wait to learn how many are distinct: the first row, with its sum, stands in the place of those
// that are left over.
struct RowSums {
  Tensor rows;  // [n] int64
  Tensor sums;  // [n, ..]
};

// Adds up the values of each row, in their order. The host waits for nothing. Under a NoGradGuard.
// rows: [n] int64; values: [n, ..], n > 0.
RowSums add_up_rows(const Tensor& rows, const Tensor& values);

}  // namespace cohort::internal
