// For tests: NCCL between simulated GPUs, among the backends of communicator_conformance_test.cc
// and others. A task has two GPUs where they suffice, so that calls of one buffer and of one for
// each GPU both occur.
#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/nccl/testing_gpu_communicator.h"
#include "cohort/collective/testing_backends.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/fake_nccl.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::collective {
namespace {

Communicators make_gpu_communicators(int size, int64_t generation) {
  const int each = 2 * size <= testing::SimulatedGpus::kMost ? 2 : 1;
  return make_group(size, generation, [&](const GroupMember& member) {
    std::vector<c10::Device> devices;
    for (int i = 0; i < each; ++i) {
      devices.emplace_back(testing::kSimulated,
                           static_cast<c10::DeviceIndex>(each * member.rank + i));
    }
    auto gpus = make_nccl_communicator(make_shared_memory_communicator(member), devices,
                                       std::chrono::seconds(30));
    return std::make_shared<GpuCommunicator>(std::move(gpus), std::move(devices));
  });
}

const bool is_registered = [] {
  if (std::getenv("COHORT_NCCL_LIBRARY") == nullptr) testing::use_fake_nccl();
  more_backends().push_back({"Nccl", make_gpu_communicators});
  return true;
}();

}  // namespace
}  // namespace cohort::collective
