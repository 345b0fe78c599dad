#include "cohort/distribute/strategies/mirrored_strategy.h"

#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/strategy_devices.h"
#include "cohort/distribute/strategies/local_strategy.h"

namespace cohort::distribute {
namespace {

constexpr const char* kMirrored = "MirroredStrategy";

std::vector<std::string> default_devices() {
  std::vector<std::string> gpus = internal::all_devices("GPU");
  return gpus.empty() ? internal::all_devices("CPU") : gpus;
}

std::shared_ptr<internal::StrategyCore> make_core(const std::vector<std::string>& devices,
                                                  const MirroredStrategyOptions& options) {
  internal::log_info("Using MirroredStrategy with devices (", internal::device_list(devices), ")");
  return std::make_shared<internal::LocalStrategy>(
      internal::LocalStrategy::Config{.name = kMirrored,
                                      .devices = devices,
                                      .shared_storage = options.shared_storage,
                                      .cross_device_ops = options.cross_device_ops});
}

}  // namespace

MirroredStrategy::MirroredStrategy(MirroredStrategyOptions options)
    : Strategy(make_core(default_devices(), options)) {}

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   MirroredStrategyOptions options)
    : Strategy(make_core(internal::checked_devices(devices, kMirrored), options)) {}

}  // namespace cohort::distribute
