#include "common/strategies.h"

#include "common/in_process_cluster.h"

namespace examples {

namespace tf = cohort;
using tf::distribute::Strategy;

namespace {

std::vector<std::string> logical_cpus() {
  std::vector<std::string> devices;
  for (const auto& device : tf::config::list_logical_devices("CPU")) devices.push_back(device.name);
  return devices;
}

MadeStrategy alone(const Strategy& strategy) { return {nullptr, strategy}; }

// Of the cluster that TF_CONFIG names; without one, of a small one in this process.
MadeStrategy parameter_servers() {
  const tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  if (!resolver.cluster_spec().empty()) {
    return {nullptr, tf::distribute::ParameterServerStrategy(resolver)};
  }
  constexpr int kWorkers = 2;
  constexpr int kPs = 1;
  auto cluster = std::make_shared<InProcessCluster>(kWorkers, kPs);
  return {cluster, tf::distribute::ParameterServerStrategy(cluster->resolver())};
}

struct Named {
  const char* name;
  MadeStrategy (*make)();
};

constexpr Named kStrategies[] = {
    {"one_device", [] { return alone(tf::distribute::OneDeviceStrategy("CPU:0")); }},
    {"mirrored", [] { return alone(tf::distribute::MirroredStrategy(logical_cpus())); }},
    {"central_storage",
     [] { return alone(tf::distribute::CentralStorageStrategy(logical_cpus())); }},
    {"multi_worker", [] { return alone(tf::distribute::MultiWorkerMirroredStrategy()); }},
    {"parameter_server", parameter_servers},
};

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Named& one : kStrategies) names.emplace_back(one.name);
  return names;
}

MadeStrategy make_strategy(const std::string& name) {
  for (const Named& one : kStrategies) {
    if (one.name == name) return one.make();
  }
  throw tf::InvalidArgumentError("no strategy is called '" + name + "'");
}

}  // namespace examples
