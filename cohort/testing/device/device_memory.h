// The memory of simulated GPUs and tensors in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <torch/version.h>

namespace cohort::testing {

// A kind of device of which libtorch has the name, and no kernel. PrivateUse1 is made for the
// purpose, but has no Tensor::set_data before libtorch 2; since then XPU has kernels.
#if TORCH_VERSION_MAJOR >= 2
#define COHORT_SIMULATED_DEVICE PrivateUse1
#define COHORT_SIMULATED_SPARSE SparsePrivateUse1
#define COHORT_SIMULATED_AUTOGRAD AutogradPrivateUse1
#else
#define COHORT_SIMULATED_DEVICE XPU
#define COHORT_SIMULATED_SPARSE SparseXPU
#define COHORT_SIMULATED_AUTOGRAD AutogradXPU
#endif
constexpr c10::DeviceType kSimulated = c10::DeviceType::COHORT_SIMULATED_DEVICE;
constexpr c10::DispatchKey kSimulatedKey = c10::DispatchKey::COHORT_SIMULATED_DEVICE;

// Allocates on the current device of the calling thread.
c10::Allocator& device_allocator();

// The current device of the calling thread.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

bool is_simulated(const at::Tensor& tensor);

// A tensor of the host over the memory of a dense device tensor. Valid while `tensor` lives. Where
// an operation resizes it, it gets memory of its own.
at::Tensor host_view(const at::Tensor& tensor);
// Whether `view`, a host view of `tensor`, still lies in the device's memory.
bool lies_in(const at::Tensor& view, const at::Tensor& tensor);
// The device tensor that takes a dense host tensor's memory over, without a copy.
at::Tensor adopt(const at::Tensor& host, c10::Device device);

}  // namespace cohort::testing
