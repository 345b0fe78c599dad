// Simulated GPUs: devices of libtorch whose memory no host code can read, so that what is written
// for GPUs runs, and fails as it would there, on a machine that has none.
//
//   SimulatedGpus gpus(2);                               // before the first strategy
//   distribute::MirroredStrategy strategy({"GPU:0", "GPU:1"});
//   const DeviceCounts before = device_counts();
//   strategy.run(step);
//   EXPECT_EQ((device_counts() - before).host_waits, 1);
//
// Like CUDA they refuse operands of two devices and random generators of the host. A pointer into
// their memory that host code follows is a segmentation fault. Fresh memory holds NaN. Kernels run
// when they are called; an operation on memory that another stream uses, with no event that orders
// the two, throws all the same (device_order.h). Their graphs (core/recording) refuse what the host
// would wait for, keep what came from the host as it was, and find out where memory of others was
// freed before a replay.
//
// The same tests try real GPUs: with COHORT_TEST_GPUS=real in the environment the machine's own
// take the simulated ones' place, each split into as many logical ones as a test wants; with
// COHORT_TEST_GPUS=cpu the CPU does, which tries the tests.
#pragma once

#include <cstdint>

namespace cohort::testing {

// Makes "GPU:i" mean a simulated device while it lives; the logical devices start anew at both
// ends. Tensors on the devices may outlive it. At most one lives at a time.
class SimulatedGpus {
 public:
  // How many devices libtorch knows, from the start of the program: its autograd engine counts them
  // once.
  static constexpr int kMost = 8;

  // Errors: InvalidArgument (count below 1 or above kMost, or another COHORT_TEST_GPUS),
  // FailedPrecondition (real ones are wanted, and there is none).
  explicit SimulatedGpus(int count);
  ~SimulatedGpus();
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;

  // How far results may be from the CPU's, relative to them: 0 where kernels are the CPU's own.
  static double tolerance();
};

// What all simulated devices have done together.
struct DeviceCounts {
  int64_t to_device = 0;        // copies from host memory
  int64_t to_host = 0;          // copies to host memory, numbers that were read included
  int64_t between_devices = 0;  // copies from one device to another
  int64_t host_waits = 0;  // the host waited for the device: a blocking copy to it, a number read
  int64_t kernels = 0;     // operations, copies within a device included; graphs as one each
  int64_t replays = 0;     // of graphs

  DeviceCounts operator-(const DeviceCounts& earlier) const;
};

// Since the start of the program. Thread safety: any thread.
DeviceCounts device_counts();

// What each device holds at most while this lives: what does not fit is an out-of-memory error as
// CUDA's. By default there is no limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

}  // namespace cohort::testing
