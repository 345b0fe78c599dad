#include "cohort/distribute/strategies/one_device_strategy.h"

#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/local_strategy.h"

namespace cohort::distribute {

OneDeviceStrategy::OneDeviceStrategy(std::string_view device)
    : Strategy(std::make_shared<internal::LocalStrategy>(internal::LocalStrategy::Config{
          .name = "OneDeviceStrategy", .devices = {canonicalize(device)}})) {}

}  // namespace cohort::distribute
