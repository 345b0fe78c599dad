// All devices of one machine in step: variables mirrored, gradients summed.
//
//   config::set_logical_device_configuration("CPU", 2);   // to try it on one CPU
//   MirroredStrategy strategy;
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

class CrossDeviceOps;

struct MirroredStrategyOptions {
  // How values of the replicas, gradients among them, become one: ReductionToOneDevice, say
  // (cross_device_ops.h). nullptr: Cohort's own way, which adds every element where it lies and is
  // the fastest.
  std::shared_ptr<const CrossDeviceOps> cross_device_ops = nullptr;
  // Whether replicas that share memory share one storage of each mirrored variable, with a leaf per
  // replica: one write instead of N. Results are the same either way.
  bool shared_storage = true;
};

class COHORT_API MirroredStrategy : public Strategy {
 public:
  // On every logical GPU, or on every logical CPU if there is no GPU.
  explicit MirroredStrategy(MirroredStrategyOptions options = {});
  // On the named devices: "CPU:0", "/gpu:1", ...
  // Errors: InvalidArgument (none, a device twice, no such device, another task's device).
  explicit MirroredStrategy(const std::vector<std::string>& devices,
                            MirroredStrategyOptions options = {});
  MirroredStrategy(std::initializer_list<std::string> devices,  // so that {"CPU:0"} is a list
                   MirroredStrategyOptions options = {})
      : MirroredStrategy(std::vector<std::string>(devices), options) {}
};

}  // namespace cohort::distribute
