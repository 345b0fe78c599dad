// Memory that devices read and write while the host goes on.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// An uninitialised tensor of the host to and from which `device` copies without a wait: page-locked
// where the device asks for that.
Tensor host_buffer(at::IntArrayRef shape, DType dtype, c10::Device device);

// A tensor of the host on `device`, in the order of the device's own work: the host waits neither
// for the copy nor for what the device does before it.
Tensor copied_to(const Tensor& host, c10::Device device);

}  // namespace cohort::internal
