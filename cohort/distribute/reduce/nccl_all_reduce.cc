#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/core/error.h"
#include "cohort/distribute/reduce/all_reduce_ops.h"

namespace cohort::distribute {
namespace {

using Devices = std::vector<c10::Device>;

// To connect, and to bring a reduction into the GPUs' streams.
constexpr std::chrono::minutes kMostWaiting{2};

Devices devices_of(const std::vector<Tensor>& values) {
  Devices devices;
  for (const Tensor& value : values) {
    const c10::Device device = value.device();
    const bool is_taken = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (device.is_cpu() || is_taken) {
      throw InvalidArgumentError(internal::str(
          "NcclAllReduce of values on ", device.str(), is_taken ? " twice" : "",
          ": NCCL adds values on GPUs, each on one of its own; use ReductionToOneDevice, or leave "
          "cross_device_ops out"));
    }
    devices.push_back(device);
  }
  return devices;
}

collective::Buffer buffer_of(const Tensor& value) {
  const c10::impl::VirtualGuardImpl guard(value.device().type());
  return {value.data_ptr(), value.numel(), value.scalar_type(), guard.getStream(value.device())};
}

}  // namespace

// The GPUs that are connected. Thread safety: any thread.
class NcclAllReduce::Groups {
 public:
  void add_up(const std::vector<Tensor>& values) {
    const Devices devices = devices_of(values);
    std::vector<collective::Buffer> buffers;
    for (const Tensor& value : values) buffers.push_back(buffer_of(value));
    const std::lock_guard lock(mutex_);  // every GPU must see the calls of a group in one order
    std::shared_ptr<collective::Communicator>& group = groups_[key_of(devices)];
    try {
      if (group == nullptr) {
        group = collective::make_nccl_communicator(std::make_shared<collective::SoleCommunicator>(),
                                                   devices, kMostWaiting);
      }
      // What follows in the same streams sees the sums.
      group->all_reduce(buffers, {.name = "NcclAllReduce", .timeout = kMostWaiting});
    } catch (...) {
      group = nullptr;  // the next reduction connects again
      throw;
    }
  }

 private:
  using Key = std::vector<std::pair<c10::DeviceType, c10::DeviceIndex>>;
  static Key key_of(const Devices& devices) {
    Key key;
    for (const c10::Device& device : devices) key.emplace_back(device.type(), device.index());
    return key;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<collective::Communicator>> groups_;  // guarded by mutex_
};

NcclAllReduce::NcclAllReduce(int num_packs)
    : AllReduceOps(num_packs, "NCCL all-reduce"), groups_(std::make_shared<Groups>()) {}

std::vector<Tensor> NcclAllReduce::all_reduce_sum(const std::vector<Tensor>& values) const {
  groups_->add_up(values);
  return values;
}

}  // namespace cohort::distribute
