#include <algorithm>
#include <memory>

#include "cohort/collective/nccl/nccl_library.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/reduce/all_reduce_ops.h"
#include "cohort/distribute/reduce/cross_device_ops.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"

namespace cohort::distribute {

std::shared_ptr<const CrossDeviceOps> choose_cross_device_ops(
    const std::vector<std::string>& devices) {
  const auto logical = config::list_logical_devices();
  bool all_gpus = true;
  for (const std::string& device : devices) {
    const std::string name = canonicalize(device);
    all_gpus &= DeviceSpec::parse(name).type == "GPU";
    const auto is_it = [&](const config::LogicalDevice& one) { return one.name == name; };
    if (std::none_of(logical.begin(), logical.end(), is_it)) {
      internal::log_warning("device ", name, " of a strategy is not one of this process's devices");
    }
  }
  const bool virtual_gpus =
      config::list_logical_devices("GPU").size() != config::list_physical_devices("GPU").size();
  if (!all_gpus) {
    internal::log_info(
        "There are non-GPU devices in the strategy: values are reduced on one device, without "
        "NCCL.");
  } else if (virtual_gpus) {
    internal::log_info(
        "There are virtual GPUs in the strategy: values are reduced on one device, without NCCL.");
  } else {
    try {
      collective::nccl::library();
      return std::make_shared<NcclAllReduce>();
    } catch (const FailedPreconditionError& error) {
      internal::log_warning("Values are reduced on one device: ", error.what());
    }
  }
  return std::make_shared<ReductionToOneDevice>();
}

}  // namespace cohort::distribute
