#include "cohort/distribute/core/strategy_devices.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"

namespace cohort::internal {

std::vector<std::string> checked_devices(const std::vector<std::string>& devices,
                                         std::string_view strategy) {
  if (devices.empty()) {
    throw InvalidArgumentError(str(strategy, " needs at least one device, but the list is empty"));
  }
  std::vector<std::string> names;
  for (const std::string& device : devices) {
    const std::string name = canonicalize(device);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw InvalidArgumentError(str(strategy, " got device ", name, " twice"));
    }
    torch_device(name);
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> all_devices(std::string_view type) {
  std::vector<std::string> names;
  for (const auto& device : config::list_logical_devices(type)) names.push_back(device.name);
  return names;
}

std::string device_list(const std::vector<std::string>& devices) {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "'" : ", '") + device + "'";
  return text;
}

}  // namespace cohort::internal
