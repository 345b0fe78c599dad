// Everything on one device: the machinery of a strategy, for testing and as the smallest case.
//
//   OneDeviceStrategy strategy("CPU:0");
#pragma once

#include <string_view>

#include "cohort/core/export.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

class COHORT_API OneDeviceStrategy : public Strategy {
 public:
  // Errors: InvalidArgument (not a device name, or no such device; names those there are).
  explicit OneDeviceStrategy(std::string_view device);
};

}  // namespace cohort::distribute
