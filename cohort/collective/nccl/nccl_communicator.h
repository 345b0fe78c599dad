// Values in GPU memory over NVIDIA's NCCL. Part of the library where libtorch has CUDA and the
// build finds the CUDA toolkit and NCCL.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Calls with buffers of GPUs go over NCCL, one buffer for each of `devices` (their CUDA indices);
// all others go over `host`, which connects the same tasks, and which CheckedCommunicator asks
// before each call. NCCL adds in an order of its own: the same on every replica, but not that of
// the ranks.
// COLLECTIVE. Errors: InvalidArgument (no devices), those of `host`'s calls, DeadlineExceeded,
// Unavailable (NCCL failed; two ranks on one device, too).
std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host,
                                                     std::vector<int> devices,
                                                     std::chrono::nanoseconds timeout);

}  // namespace cohort::collective
