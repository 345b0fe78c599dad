// For tests: the tasks of a group as threads of this process, each with a strategy of its own. They
// have nothing in common but sockets, where nothing else is said.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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
};

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
        const Strategy strategy(
            std::make_shared<internal::LocalStrategy>(internal::LocalStrategy::Config{
                .name = "several tasks",
                .devices = {devices.begin(), devices.begin() + num_replicas_of(own)},
                .communicator = communicators[own],
                .communication_options = options.communication_options}));
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
