// Values in the memory of GPUs over NVIDIA's NCCL, which is opened when the first group forms.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Calls with buffers of GPUs go over NCCL: one buffer for each of `devices`, this task's GPUs, or a
// single one on the first of them. All others go over `host`, which connects the same tasks; by it
// tasks agree on a call before NCCL's (CheckedCommunicator), and learn of a lost task or an abort,
// and which task is late, while they wait for NCCL.
//
// NCCL adds in an order of its own: the same on every replica, but not that of the ranks. Integers
// of 16 bits and bool are not added. A call returns when it is in its buffers' streams, without a
// wait for the devices; Work::order_after orders other streams after it.
//
// COLLECTIVE. Errors: InvalidArgument (no devices), FailedPrecondition (no NCCL that can be used,
// two ranks on one device), those of `host`'s calls, DeadlineExceeded, Unavailable (NCCL failed).
std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host,
                                                     std::vector<c10::Device> devices,
                                                     std::chrono::nanoseconds timeout);

}  // namespace cohort::collective
