// What a step costs each worker besides its own forward and backward pass, in a group of real
// processes: processor time of all of the task's threads, messages, bytes. bench/scale.py makes a
// model of it.
//
//   bench_scale BACKEND RANKS VARIABLES BYTES STEPS
//
// A step applies given gradients of VARIABLES variables of BYTES each (SGD), so that it consists of
// what grows with the group, and of the update. Prints microseconds, messages and bytes of a step,
// the mean over the ranks, each of which takes the round of STEPS steps that took the least.
//
//   BACKEND  memory: shared memory; calls, gloo: each rank on a host (network namespace) of its own,
//            which takes root; none: one task alone
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/collective/network/testing_counting_transport.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"
#include "network_group.h"

namespace {

using cohort::collective::Communicator;
using cohort::collective::GroupMember;
using cohort::collective::Sent;
using cohort::distribute::Server;
using cohort::distribute::Strategy;
using cohort::distribute::Variable;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr int kRounds = 8;
constexpr int kWarmSteps = 3;  // the first ones agree on what the later ones promise

// Of all threads of this process.
double processor_us() {
  timespec used;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

// What a step costs a rank.
struct Cost {
  double us = 0;
  double messages = 0;
  double bytes = 0;
};

std::ostream& operator<<(std::ostream& out, const Cost& cost) {
  return out << cost.us << ' ' << cost.messages << ' ' << cost.bytes;
}

// ---- What a rank runs.

std::shared_ptr<Communicator> connect(const std::string& backend, Server& server, Sent& sent) {
  const GroupMember member = bench::member_in(server);
  if (backend == "memory") {
    return std::make_shared<cohort::collective::CountingCommunicator>(
        cohort::collective::make_shared_memory_communicator(member), sent);
  }
  auto transport = bench::connect_transport(backend, member, server);
  return cohort::collective::make_transport_communicator(
      member, std::make_unique<cohort::collective::CountingTransport>(std::move(transport), sent));
}

// Applies the same gradients in each step.
class Task {
 public:
  Task(const Strategy& strategy, int variables, int64_t bytes) : strategy_(strategy) {
    const int64_t numbers = bytes / static_cast<int64_t>(sizeof(float));
    const auto scope = strategy.scope();
    for (int i = 0; i < variables; ++i) variables_.emplace_back(at::zeros({numbers}));
    for (const Variable& variable : variables_) {
      gradients_.emplace_back(at::full({numbers}, 1e-3), variable);
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      strategy_.run(
          [&](cohort::distribute::ReplicaContext&) { optimizer_.apply_gradients(gradients_); });
    }
  }

 private:
  const Strategy& strategy_;
  std::vector<Variable> variables_;
  cohort::keras::optimizers::GradientsAndVariables gradients_;
  cohort::keras::optimizers::SGD optimizer_{
      cohort::keras::optimizers::SGDOptions{.learning_rate = 1e-6}};
};

Cost measure(Task& task, const Sent& sent, int steps) {
  task.run(kWarmSteps);
  double least_us = std::numeric_limits<double>::infinity();
  const Sent before = sent;
  for (int round = 0; round < kRounds; ++round) {
    const double start = processor_us();
    task.run(steps);
    least_us = std::min(least_us, (processor_us() - start) / steps);
  }
  const double all_steps = static_cast<double>(kRounds) * steps;
  return {.us = least_us,
          .messages = static_cast<double>(sent.messages - before.messages) / all_steps,
          .bytes = static_cast<double>(sent.bytes - before.bytes) / all_steps};
}

std::string take_part(const Arguments& arguments) {
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  const std::string& backend = arguments.at(0);
  const cohort::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const cohort::distribute::ServerOptions server_options;
  Server server(resolver, server_options);
  Sent sent;
  std::shared_ptr<Communicator> communicator;
  if (backend != "none") communicator = connect(backend, server, sent);
  const Strategy strategy(
      std::make_shared<cohort::internal::LocalStrategy>(cohort::internal::LocalStrategy::Config{
          .name = "bench",
          .devices = {cohort::canonicalize("CPU:0")},
          .communicator = std::move(communicator),
          // One thread computes: those that wait for each other by spinning would count.
          .cores = 1}));
  Task task(strategy, std::stoi(arguments.at(1)), std::stoll(arguments.at(2)));
  std::ostringstream cost;
  cost << measure(task, sent, std::stoi(arguments.at(3)));
  return cost.str();
}

// ---- The program that starts them.

Cost measure_ranks(const std::string& backend, int ranks, Arguments arguments) {
  const bool own_hosts = backend == "calls" || backend == "gloo";
  arguments.insert(arguments.begin(), backend);
  cohort::testing::MultiProcessOptions options;
  options.jobs = {{"worker", ranks}};
  options.function = "take_part";
  options.arguments = std::move(arguments);
  options.deadline = 300s;
  options.own_hosts = own_hosts;
  if (own_hosts) options.environment = {{"COHORT_INSECURE_NETWORK", "1"}};
  cohort::testing::MultiProcessRunner runner(std::move(options));
  runner.start();
  Cost mean;
  for (const auto& [task, text] : runner.join()) {
    std::istringstream words(text);
    Cost one;
    words >> one.us >> one.messages >> one.bytes;
    mean.us += one.us / ranks;
    mean.messages += one.messages / ranks;
    mean.bytes += one.bytes / ranks;
  }
  return mean;
}

int run(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: bench_scale memory|calls|gloo|none RANKS VARIABLES BYTES STEPS\n";
    return 64;
  }
  try {
    std::cout << measure_ranks(argv[1], std::stoi(argv[2]), {argv[3], argv[4], argv[5]})
              << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_scale: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"take_part", take_part}}, run);
}
