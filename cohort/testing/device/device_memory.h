// The memory of simulated GPUs and tensors in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <vector>

#include "cohort/core/structure/device_settings.h"
#include "cohort/testing/device/device_order.h"

namespace cohort::testing {

constexpr c10::DispatchKey kSimulatedKey = c10::DispatchKey::COHORT_SIMULATED_DEVICE;

// Bytes of a device's tensors; their highest count since the last reset. And how many it may hold.
config::MemoryInfo memory_in_use(int device);
void reset_peak(int device);
void set_memory_limit(int64_t bytes);

// Allocates on the current device of the calling thread.
c10::Allocator& device_allocator();

bool is_simulated(const at::Tensor& tensor);

// A tensor of the host over the memory of a dense device tensor. Valid while `tensor` lives. Where
// an operation resizes it, it gets memory of its own.
at::Tensor host_view(const at::Tensor& tensor);
// Whether `view`, a host view of `tensor`, still lies in the device's memory.
bool lies_in(const at::Tensor& view, const at::Tensor& tensor);
// The device tensor that takes a dense host tensor's memory over, without a copy.
at::Tensor adopt(const at::Tensor& host, c10::Device device);

// A device tensor over memory of a device.
at::Tensor tensor_at(c10::Storage memory, caffe2::TypeMeta dtype, at::IntArrayRef sizes,
                     at::IntArrayRef strides, int64_t offset);
// The tensor's memory in its present form, whatever becomes of the tensor.
at::Tensor alias_of(const at::Tensor& tensor);

// What lay in devices' memory, of what has changed since.
// Thread safety: none, but other threads may use other memory meanwhile.
class DeviceSnapshot {
 public:
  DeviceSnapshot();
  // Whether the tensor's memory was there already.
  bool has(const at::Tensor& tensor) const;
  // Call it before the tensor's memory changes.
  void save(const at::Tensor& tensor);
  // Writes back what was saved and is still there; saved memory that was made since holds NaN.
  void put_back() const;

 private:
  const uint64_t last_;  // the number of the last that was made
  std::map<void*, std::vector<char>> contents_;
};

}  // namespace cohort::testing
