// Functions of each element, and their gradients: loops of a plan.
#pragma once

#include <cstdint>

#include "cohort/ops/plan/operation.h"

namespace cohort::internal::plan {

// Whether a gradient is computed from what the function was given; else from what it gave.
bool reads_input(Function function);

// Computes an activation of arrays without gaps, which may be the same one. NaN stays. Results are
// within 1e-6 of the function, or of 1 if that is smaller.
void activate(const Activation& activation, const float* from, int64_t count, float* to);
// value: what reads_input says. `result` may be `gradient`.
void activation_gradient(const Activation& activation, const float* value, const float* gradient,
                         int64_t count, float* result);

}  // namespace cohort::internal::plan
