// The order of what simulated devices do. Their streams run side by side, and events order them: an
// operation on memory that another stream uses, with nothing that orders the two, throws, although
// here all is done at once.
//
// Each stream has a vector clock: how far it knows that the others are. Memory knows when each
// stream has used it last.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/version.h>

#include <array>
#include <cstdint>

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

// The current device of the calling thread.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

// The default stream, 0, and those of the pool.
constexpr int kStreamsOfDevice = 4;
constexpr int kMostDevices = 8;

// How many operations of each stream are done at some moment.
using StreamClock = std::array<uint64_t, kStreamsOfDevice * kMostDevices>;

// The stream of the calling thread's operations on a device.
c10::Stream stream_of_thread(c10::Device device);
// Returns the one before.
c10::Stream set_stream_of_thread(c10::Stream stream);
c10::Stream stream_from_pool(c10::Device device);

// All that is queued on the stream.
StreamClock moment_of(c10::Stream stream);
// What is queued on the stream from now on comes after the moment.
void order_after(c10::Stream stream, const StreamClock& moment);
// The host knows that all before the moment is done, and so does what it queues from now on.
void host_waited_for(const StreamClock& moment);
// Both streams go on together, as after a copy from one device to another.
void order_together(c10::Stream one, c10::Stream other);

// The memory is the calling thread's stream's on `device`.
void make_memory(const void* device_memory, c10::Device device);
// The memory is not reused, once it is released, before `stream` is through.
void keep_memory(const void* device_memory, c10::Stream stream);
// Nothing orders a use of the memory by another stream before what its own does next: the next
// operation of any device throws.
void release_memory(const void* device_memory);

// One operation on the calling thread's stream of a device.
// Errors: c10::Error (the memory is another stream's, or was released too early).
class StreamOperation {
 public:
  explicit StreamOperation(c10::Device device);
  void reads(const at::Tensor& tensor) const;
  void writes(const at::Tensor& tensor) const;

 private:
  const int stream_;
  uint64_t time_ = 0;
};

}  // namespace cohort::testing
