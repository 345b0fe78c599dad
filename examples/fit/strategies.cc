#include "strategies.h"

namespace fit {

namespace tf = cohort;
using tf::distribute::Strategy;

namespace {

std::vector<std::string> logical_cpus() {
  std::vector<std::string> devices;
  for (const auto& device : tf::config::list_logical_devices("CPU")) devices.push_back(device.name);
  return devices;
}

struct Named {
  const char* name;
  Strategy (*make)();
};

constexpr Named kStrategies[] = {
    {"one_device", []() -> Strategy { return tf::distribute::OneDeviceStrategy("CPU:0"); }},
    {"mirrored", []() -> Strategy { return tf::distribute::MirroredStrategy(logical_cpus()); }},
    {"central_storage",
     []() -> Strategy { return tf::distribute::CentralStorageStrategy(logical_cpus()); }},
    {"multi_worker", []() -> Strategy { return tf::distribute::MultiWorkerMirroredStrategy(); }},
};

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Named& one : kStrategies) names.emplace_back(one.name);
  return names;
}

Strategy make_strategy(const std::string& name) {
  for (const Named& one : kStrategies) {
    if (one.name == name) return one.make();
  }
  throw tf::InvalidArgumentError("no strategy is called '" + name + "'");
}

}  // namespace fit
