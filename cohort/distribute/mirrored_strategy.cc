#include "cohort/distribute/mirrored_strategy.h"

#include <algorithm>

#include "cohort/core/device.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/local_strategy.h"

namespace cohort::distribute {
namespace {

std::vector<std::string> default_devices() {
  auto devices = config::list_logical_devices("GPU");
  if (devices.empty()) devices = config::list_logical_devices("CPU");
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.name);
  return names;
}

std::vector<std::string> checked_devices(const std::vector<std::string>& devices) {
  if (devices.empty()) {
    throw InvalidArgumentError("MirroredStrategy needs at least one device, but the list is empty");
  }
  std::vector<std::string> names;
  for (const std::string& device : devices) {
    const std::string name = canonicalize(device);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw InvalidArgumentError(internal::str("MirroredStrategy got device ", name, " twice"));
    }
    internal::torch_device(name);
    names.push_back(name);
  }
  return names;
}

std::shared_ptr<internal::StrategyCore> make_core(const std::vector<std::string>& devices,
                                                  const MirroredStrategyOptions& options) {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "'" : ", '") + device + "'";
  internal::log_info("Using MirroredStrategy with devices (", text, ")");
  return std::make_shared<internal::LocalStrategy>(
      internal::LocalStrategy::Config{.name = "MirroredStrategy",
                                      .devices = devices,
                                      .shared_storage = options.shared_storage});
}

}  // namespace

MirroredStrategy::MirroredStrategy(MirroredStrategyOptions options)
    : Strategy(make_core(default_devices(), options)) {}

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   MirroredStrategyOptions options)
    : Strategy(make_core(checked_devices(devices), options)) {}

}  // namespace cohort::distribute
