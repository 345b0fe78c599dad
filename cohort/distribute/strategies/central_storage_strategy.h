// One copy of every variable, on one device, and the step on several: for models that do not fit on
// each device several times.
//
//   config::set_logical_device_configuration("CPU", 2);   // to try it on one CPU
//   CentralStorageStrategy strategy({"CPU:0", "CPU:1"});
//
// Steps run in step, as under MirroredStrategy: replicas read the one copy, their gradients are
// summed, and the update is applied once. What replicas assign to a variable is aggregated first.
// ON_READ variables have a component per replica under every strategy. docs/distribute.md.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

class COHORT_API CentralStorageStrategy : public Strategy {
 public:
  // compute_devices: one replica on each; nullopt: every logical GPU, or CPU:0 if there is no GPU.
  // parameter_device: where variables are; empty: the compute device if there is only one, else
  // CPU:0.
  // Errors: InvalidArgument (an empty list, a device twice, no such device), Unimplemented (another
  // task's device).
  explicit CentralStorageStrategy(
      const std::optional<std::vector<std::string>>& compute_devices = std::nullopt,
      std::string_view parameter_device = "");
  CentralStorageStrategy(std::initializer_list<std::string> compute_devices,
                         std::string_view parameter_device = "")
      : CentralStorageStrategy(std::vector<std::string>(compute_devices), parameter_device) {}
};

namespace experimental {
using distribute::CentralStorageStrategy;
}  // namespace experimental

}  // namespace cohort::distribute
