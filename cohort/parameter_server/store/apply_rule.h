// One step of an optimizer's rule on tensors.
#pragma once

#include "cohort/core/structure/tensor.h"
#include "cohort/optim/update_rule.h"

namespace cohort::internal {

// Writes to `value` and `slots` (contiguous, in the rule's order) in place.
// Shapes: value [rows, ..], each slot as the value, or as the rule says; gradient as the value, or
// with indices [n] of int64, strictly ascending, rows of it [n, ..]; indices: undefined where the
// gradient is dense.
void apply_rule(const optim::UpdateRule& rule, const optim::StepScalars& scalars,
                const Tensor& value, void* const* slots, const Tensor& gradient,
                const Tensor& indices);

}  // namespace cohort::internal
