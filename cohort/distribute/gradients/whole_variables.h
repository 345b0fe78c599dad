// The update of variables by rules that take them whole.
#pragma once

#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/gradients/sparse_rows.h"

namespace cohort::internal {

// Updates `target`, whose components are on the host, and copies the result to its further ones.
// gradient: the sum over replicas, of the variable's dtype and number of elements, dense.
void update_whole_on_host(const UpdateTarget& target, const optim::UpdateRule& rule,
                          const optim::StepScalars& scalars, const Tensor& gradient);

// Rows of which no two have the same id, in a new tensor of the variable's shape; zeros elsewhere.
Tensor dense_of_rows(const SparseRows& rows, const distribute::Variable& variable);

}  // namespace cohort::internal
