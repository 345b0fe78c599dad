// For tests: a machine with some logical CPUs.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"

namespace cohort::distribute {

// Starts each test from a fresh device configuration of `count` logical CPUs.
class LogicalCpus {
 public:
  explicit LogicalCpus(int count) {
    logging::set_level(logging::Level::kWarning);
    internal::reset_devices_for_testing();
    config::set_logical_device_configuration("CPU", count);
  }
  ~LogicalCpus() {
    internal::reset_devices_for_testing();
    logging::set_level(level_);  // later tests may read the log
  }
  LogicalCpus(const LogicalCpus&) = delete;
  LogicalCpus& operator=(const LogicalCpus&) = delete;

 private:
  const logging::Level level_ = logging::level();
};

// A MirroredStrategy on `count` logical CPUs of its own configuration.
inline MirroredStrategy mirrored(int count, MirroredStrategyOptions options = {}) {
  logging::set_level(logging::Level::kWarning);
  internal::reset_devices_for_testing();
  config::set_logical_device_configuration("CPU", count);
  return MirroredStrategy(options);
}

}  // namespace cohort::distribute
