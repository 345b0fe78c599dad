// Runs everything on one device: for testing a program under a strategy, and as the simplest case.
//
//   OneDeviceStrategy strategy("CPU:0");
#pragma once

#include <string_view>

#include "cohort/core/export.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

class COHORT_API OneDeviceStrategy : public Strategy {
 public:
  // Errors: InvalidArgument (not a device name, or no such device; names the existing ones).
  explicit OneDeviceStrategy(std::string_view device);
};

}  // namespace cohort::distribute
