#include "overlap_hosts.h"

#include <memory>
#include <sstream>
#include <utility>

#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/testing/multi_process_runner.h"
#include "network_group.h"
#include "overlap_task.h"

namespace bench {
namespace {

using cohort::distribute::Server;
using cohort::distribute::Strategy;
using cohort::testing::MultiProcessRunner;

// What worker 0 says; bits_per_second: 0 means no limit.
OverlapTimes times_between_hosts(const std::string& backend, int64_t bits_per_second) {
  cohort::testing::MultiProcessOptions options;
  options.jobs = {{"worker", kOverlapTasks}};
  options.function = "overlap_on_a_host";
  options.arguments = {backend};
  options.own_hosts = true;
  options.environment = {{"COHORT_INSECURE_NETWORK", "1"}};
  MultiProcessRunner runner(std::move(options));
  if (bits_per_second > 0) {
    for (const auto& task : runner.tasks()) runner.limit_rate(task, bits_per_second);
  }
  runner.start();
  std::istringstream words(runner.join().at({"worker", 0}));
  OverlapTimes times;
  words >> times.backward >> times.exchange >> times.overlapped >> times.afterwards;
  return times;
}

}  // namespace

std::string overlap_on_a_host(const std::vector<std::string>& arguments) {
  const cohort::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  stay_on_core(resolver.task_id().value());
  Server server(resolver, cohort::distribute::ServerOptions());
  const auto member = member_in(server);
  const auto communicator = cohort::collective::make_transport_communicator(
      member, connect_transport(arguments.at(0), member, server));
  const Strategy strategy(std::make_shared<cohort::internal::LocalStrategy>(
      cohort::internal::LocalStrategy::Config{.name = "bench",
                                              .devices = {cohort::canonicalize("CPU:0")},
                                              .communicator = communicator,
                                              .cores = 1}));
  OverlapTask task(strategy, [&] {
    communicator->barrier({.name = "begin", .timeout = std::chrono::minutes(1)});
  });
  std::ostringstream times;
  times << task.backward() << ' ' << task.exchange() << ' ' << task.step(true) << ' '
        << task.step(false);
  return times.str();
}

int measure_overlap_between_hosts(const std::string& backend) {
  const OverlapTimes unlimited = times_between_hosts(backend, 0);
  const double bytes_per_second = kOverlapBytes / (unlimited.backward / 1e3);
  OverlapTimes times = times_between_hosts(backend, static_cast<int64_t>(8 * bytes_per_second));
  times.compute = unlimited.overlapped;
  return report(times, bytes_per_second, backend + " between hosts");
}

}  // namespace bench
