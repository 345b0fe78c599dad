// For tests: the tasks of a group as threads of this process, each with a strategy of its own. They
// have nothing in common but sockets, where nothing else is said.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/collective/sum_tree.h"
#include "cohort/collective/testing_socket_communicator.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {

using MakeCommunicators = std::function<std::vector<std::shared_ptr<collective::Communicator>>(
    int tasks, int64_t generation)>;

struct TasksOptions {
  experimental::CommunicationOptions communication_options = {};
  // Puts something around each task's communicator.
  std::function<std::shared_ptr<collective::Communicator>(
      std::shared_ptr<collective::Communicator>)>
      wrap = nullptr;
  MakeCommunicators connect = collective::make_socket_communicators;
  std::vector<int> replicas_of = {};  // of each task, where not all have the same number
  // So many replicas that the tasks host, whose sums do not depend on the tasks.
  int elastic_replicas = 0;
};

// The strategy of a task.
inline Strategy strategy_of_task(int tasks, int task, const std::vector<std::string>& devices,
                                 std::shared_ptr<collective::Communicator> communicator,
                                 const TasksOptions& options) {
  internal::LocalStrategy::Config config{.name = "several tasks",
                                         .devices = devices,
                                         .communicator = std::move(communicator),
                                         .communication_options = options.communication_options};
  if (options.elastic_replicas > 0) {
    const auto range =
        collective::SumTree(options.elastic_replicas).divide(tasks)[static_cast<size_t>(task)];
    config.devices.assign(static_cast<size_t>(range.size()), devices[0]);
    config.threads_per_replica = 1;
    config.order = collective::SyncGroup::Order::kOfTree;
  }
  return Strategy(std::make_shared<internal::LocalStrategy>(std::move(config)));
}

// Runs program(strategy, task) in each of `tasks` tasks, with so many replicas each (at most, where
// the options say how many); what each threw.
inline std::vector<std::exception_ptr> run_tasks(
    int tasks, int replicas_each, const std::function<void(const Strategy&, int)>& program,
    const TasksOptions& options = {}) {
  const LogicalCpus cpus(replicas_each);
  std::vector<std::string> devices;
  for (int i = 0; i < replicas_each; ++i) devices.push_back(canonicalize(internal::str("CPU:", i)));
  const auto num_replicas_of = [&](size_t task) {
    return options.replicas_of.empty() ? replicas_each : options.replicas_of[task];
  };
  auto communicators = options.connect(tasks, /*generation=*/0);
  if (options.wrap) {
    for (auto& one : communicators) one = options.wrap(one);
  }
  std::vector<std::exception_ptr> errors(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int task = 0; task < tasks; ++task) {
    threads.emplace_back([&, task] {
      const auto own = static_cast<size_t>(task);
      try {
        const std::vector<std::string> own_devices(devices.begin(),
                                                   devices.begin() + num_replicas_of(own));
        const Strategy strategy =
            strategy_of_task(tasks, task, own_devices, communicators[own], options);
        program(strategy, task);
      } catch (...) {
        errors[own] = std::current_exception();
        communicators[own]->abort(errors[own]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Rethrows the first error.
inline void run_all_tasks(int tasks, int replicas_each,
                          const std::function<void(const Strategy&, int)>& program,
                          const TasksOptions& options = {}) {
  for (const std::exception_ptr& error : run_tasks(tasks, replicas_each, program, options)) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace cohort::distribute
