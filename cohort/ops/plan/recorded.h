// Plans as operations of libtorch: recorded by tapes, with gradients.
#pragma once

#include <memory>
#include <vector>

#include "cohort/ops/plan/plan.h"

namespace cohort::internal::plan {

// Whether plans take this tensor: float32, on the host, without gaps.
bool is_plain(const Tensor& tensor);

// Shapes: those that the plan was compiled for; is_plain. Gradients flow to the input and the
// parameters that the plan was told of, where recording is on, each parameter's as soon as the
// backward pass has it. Gradients of gradients are computed by libtorch. statistics: where given,
// gets those of Plan::normalized: [2, channels], means and biased variances.
// Errors: InvalidArgument (a gradient of a value that was changed in place, as libtorch's).
// Thread safety: any thread.
Tensor run(const std::shared_ptr<const Plan>& plan, const Tensor& input, at::TensorList parameters,
           std::vector<Tensor>* statistics = nullptr);

// Records `penalty`, which is factor * sum(x^2), as a result of the unit that reads the parameter
// x: so its gradient is added where that of x is written, without a tensor or a node of its own.
// False where none of the calling thread's latest passes reads x as it is now, or where the
// gradient that the penalty does not give would go on to functions of others.
bool record_penalty(const Tensor& x, double factor, Tensor& penalty);

}  // namespace cohort::internal::plan
