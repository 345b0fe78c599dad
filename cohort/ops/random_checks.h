// What random draws ask of their arguments, and where what they draw lies.
#pragma once

#include <utility>

#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/random_options.h"

namespace cohort::internal {

// `what` is the function's name in random::. Errors: InvalidArgument.
void check_random_shape(const char* what, at::IntArrayRef shape);
void check_uniform(const char* what, at::IntArrayRef shape, const random::UniformOptions& options);
void check_uniform_full_int(const char* what, at::IntArrayRef shape, DType dtype);
void check_normal(const char* what, at::IntArrayRef shape, const random::NormalOptions& options);

Tensor new_host_tensor(at::IntArrayRef shape, DType dtype);

// A tensor that fill(host) fills, on the device of new tensors. A recorded step fills it again in
// each run.
template <class Fill>
Tensor drawn_on_host(at::IntArrayRef shape, DType dtype, Fill fill) {
  StepRecording* const recording = StepRecording::current();
  if (recording != nullptr && !device_of_new_tensors().is_cpu()) {
    return recording->host_values(shape, dtype, std::move(fill));
  }
  const Tensor host = new_host_tensor(shape, dtype);
  fill(host);
  return host.to(device_of_new_tensors(), /*non_blocking=*/true);
}

}  // namespace cohort::internal
