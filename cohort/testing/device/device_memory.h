// The memory of simulated GPUs and tensors in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

namespace cohort::testing {

constexpr c10::DeviceType kSimulated = c10::DeviceType::PrivateUse1;

// Allocates on the current device of the calling thread.
c10::Allocator& device_allocator();

// The current device of the calling thread.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

bool is_simulated(const at::Tensor& tensor);

// A tensor of the host over the memory of a dense device tensor. Valid while `tensor` lives. Where an
// operation resizes it, it gets memory of its own.
at::Tensor host_view(const at::Tensor& tensor);
// Whether `view`, a host view of `tensor`, still lies in the device's memory.
bool lies_in(const at::Tensor& view, const at::Tensor& tensor);
// The device tensor that takes a dense host tensor's memory over, without a copy.
at::Tensor adopt(const at::Tensor& host, c10::Device device);

}  // namespace cohort::testing
