// How the tasks of a strategy exchange values.
//
//   tf::distribute::MultiWorkerMirroredStrategy strategy(
//       {.communication_options = {.bytes_per_pack = 1 << 20, .timeout = std::chrono::hours(1)}});
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort::distribute::experimental {

enum class CommunicationImplementation {
  AUTO,  // the fastest that the devices and the network allow
  RING,  // on the host: shared memory, Gloo or gRPC
  NCCL,  // between GPUs; a warning, and RING, where there are none
};
// The implementation of this name, whatever its case. Errors: InvalidArgument.
COHORT_API CommunicationImplementation communication_implementation(std::string_view name);
// "AUTO" and so on.
COHORT_API std::string_view communication_implementation_name(CommunicationImplementation value);

struct COHORT_API CommunicationOptions {
  // The approximate size, in bytes, of a bucket of gradients. A bucket is sent as soon as all of
  // its gradients are there. 0: Cohort chooses.
  int64_t bytes_per_pack = 0;
  // How long a call waits for the other tasks, all_reduce and all_gather also for the other
  // replicas of their task, before it is a DeadlineExceededError that names them. 0: the step's
  // timeout alone, which limits it in any case.
  std::chrono::milliseconds timeout{0};
  CommunicationImplementation implementation = CommunicationImplementation::AUTO;
  // Declares that nobody who can reach the network between the hosts will read or change what the
  // tasks exchange. It may then go over Gloo, which is faster than calls, and neither encrypted nor
  // authenticated. COHORT_TRUSTED_NETWORK=1 says the same.
  bool trusted_network = false;

  // Errors: InvalidArgument (a negative field).
  void check() const;
  // A strategy's options (these), merged with those of a call: each field of `call` that is not at
  // its default replaces the strategy's.
  CommunicationOptions merged_with(const CommunicationOptions& call) const;
};
// The original's deprecated name.
using CollectiveHints = CommunicationOptions;

}  // namespace cohort::distribute::experimental
