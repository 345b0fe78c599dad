#include "cohort/distribute/one_device_strategy.h"

#include "cohort/core/structure/device.h"
#include "cohort/distribute/local_strategy.h"

namespace cohort::distribute {

OneDeviceStrategy::OneDeviceStrategy(std::string_view device)
    : Strategy(std::make_shared<internal::LocalStrategy>(internal::LocalStrategy::Config{
          .name = "OneDeviceStrategy", .devices = {canonicalize(device)}})) {}

}  // namespace cohort::distribute
