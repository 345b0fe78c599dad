// A lookup of rows as an operation that tapes record.
#pragma once

#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/store/row_ids.h"

namespace cohort::internal {

// rows[positions]: what a batch has looked up in the table that `leaf` stands for. The gradient of
// `leaf` is sparse, with the rows `distinct.ids`, each once.
// Shapes: leaf [table rows, row..]; rows [m, row..]; positions [n] -> [n, row..].
Tensor looked_up(const Tensor& leaf, const Tensor& rows, const Tensor& positions,
                 const DistinctRows& distinct);

// The same for all rows in their order, without a copy: rows[i] is that of `ids`[i], strictly
// ascending.
Tensor looked_up_all(const Tensor& leaf, const Tensor& rows, const Tensor& ids);

// `value`, recorded as that of `leaf`, of the same shape.
Tensor stands_for(const Tensor& leaf, const Tensor& value);

}  // namespace cohort::internal
