#include "cohort/distribute/strategies/central_storage_strategy.h"

#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_devices.h"
#include "cohort/distribute/strategies/local_strategy.h"

namespace cohort::distribute {
namespace {

constexpr const char* kCentralStorage = "CentralStorageStrategy";

std::vector<std::string> default_compute_devices() {
  std::vector<std::string> gpus = internal::all_devices("GPU");
  return gpus.empty() ? std::vector<std::string>{canonicalize("CPU:0")} : gpus;
}

std::shared_ptr<internal::StrategyCore> make_core(
    const std::optional<std::vector<std::string>>& compute_devices,
    std::string_view parameter_device) {
  std::vector<std::string> devices =
      compute_devices ? internal::checked_devices(*compute_devices, kCentralStorage)
                      : default_compute_devices();
  std::string parameters =
      parameter_device.empty() && devices.size() == 1
          ? devices[0]
          : canonicalize(parameter_device.empty() ? "CPU:0" : parameter_device);
  internal::torch_device(parameters);
  internal::log_info("Using CentralStorageStrategy with compute_devices (",
                     internal::device_list(devices), "), variable_device '", parameters, "'");
  return std::make_shared<internal::LocalStrategy>(
      internal::LocalStrategy::Config{.name = kCentralStorage,
                                      .devices = std::move(devices),
                                      .parameter_device = std::move(parameters)});
}

}  // namespace

CentralStorageStrategy::CentralStorageStrategy(
    const std::optional<std::vector<std::string>>& compute_devices,
    std::string_view parameter_device)
    : Strategy(make_core(compute_devices, parameter_device)) {}

}  // namespace cohort::distribute
