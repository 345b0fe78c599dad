// A program that counts on parameter servers, whose tasks are killed meanwhile. Each closure adds 1
// to a counter on every ps task: whatever is killed, the counters end exact, and agree in every
// checkpoint that was taken meanwhile.
#pragma once

#include <cohort/cohort.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/testing_detection.h"

namespace cohort::parameter_server_faults {

using detection::now_ms;
using distribute::ParameterServerStrategy;
using distribute::Server;
using distribute::ServerOptions;
using distribute::Variable;
using distribute::VariableAggregation;
using distribute::cluster_resolver::TFConfigClusterResolver;
using distribute::coordinator::ClusterCoordinator;
using distribute::coordinator::ClusterCoordinatorOptions;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

inline constexpr auto kPatience = 60s;

inline ServerOptions quick() {
  ServerOptions options = detection::test_settings(kPatience);
  options.ps_lease = std::getenv("COHORT_TEST_LEASE") ? 1s : 60s;
  return options;
}

// Waits as long as the file is there.
inline void hold(const std::string& file, const char* line) {
  if (!std::filesystem::exists(file)) return;
  std::printf("%s\n", line);
  std::fflush(stdout);
  const double until = now_ms() + 60'000;
  while (std::filesystem::exists(file) && now_ms() < until) std::this_thread::sleep_for(1ms);
}

// Says when workers are lost and come back.
class WorkerWatch {
 public:
  explicit WorkerWatch(const ClusterCoordinator& coordinator)
      : thread_([this, &coordinator] { watch(coordinator); }) {}
  ~WorkerWatch() {
    ends_ = true;
    thread_.join();
  }

 private:
  void watch(const ClusterCoordinator& coordinator) {
    std::vector<bool> was(coordinator.workers().size(), false);
    while (!ends_) {
      const auto workers = coordinator.workers();
      for (size_t i = 0; i < workers.size(); ++i) {
        if (workers[i].is_alive == was[i]) continue;
        was[i] = workers[i].is_alive;
        std::printf("worker %zu %s at %.1f\n", i, was[i] ? "is there" : "is lost", now_ms());
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  std::atomic<bool> ends_{false};
  std::thread thread_;
};

struct Program {
  Program(const ParameterServerStrategy& its_strategy, std::string in, bool is_chief)
      : strategy(its_strategy), directory(std::move(in)) {
    const auto scope = strategy.scope();
    a = Variable(0, {.name = "a", .aggregation = VariableAggregation::SUM});
    if (is_chief) hold(directory + "/hold_creation", "holds creation");
    b = Variable(0, {.name = "b", .aggregation = VariableAggregation::SUM});
  }

  distribute::WorkerFunction declare_step(int task) const {
    return strategy.function("step", [this, task] {
      strategy.run([this, task] {
        hold(directory + "/hold_worker_" + std::to_string(task), "holds a closure");
        a.assign_add(1);
        b.assign_add(1);
      });
    });
  }

  // Schedules until the counters are `total`; saves meanwhile.
  std::string count_to(int64_t total, const distribute::WorkerFunction& step,
                       const ClusterCoordinatorOptions& options) const {
    constexpr int kBetweenSaves = 40;
    ClusterCoordinator coordinator(strategy, options);
    const WorkerWatch watch(coordinator);
    train::CheckpointManager manager(train::Checkpoint({{"a", a}, {"b", b}}),
                                     directory + "/checkpoints");
    if (const auto latest = manager.latest_checkpoint()) {
      manager.checkpoint().restore(*latest).assert_consumed();
      std::printf("restored %ld\n", a.value().item<int64_t>());
    }
    std::printf("counts from %.1f\n", now_ms());
    std::fflush(stdout);
    for (int64_t i = a.value().item<int64_t>(); i < total; ++i) {
      coordinator.schedule(step);
      if (i % kBetweenSaves == kBetweenSaves - 1) manager.save();
      if (i == total / 2) {
        std::printf("half\n");
        std::fflush(stdout);
      }
    }
    coordinator.join();
    hold(directory + "/hold_end", "holds its end");
    const std::string result = str(a.value().item<int64_t>(), ' ', b.value().item<int64_t>());
    for (const std::string& path : manager.checkpoints()) {
      manager.checkpoint().restore(path).assert_consumed();
      if (a.value().item<int64_t>() != b.value().item<int64_t>()) {
        throw InternalError("the counters of " + path + " differ");
      }
    }
    return result;
  }

  template <class... Parts>
  static std::string str(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
  }

  const ParameterServerStrategy& strategy;
  const std::string directory;
  Variable a, b;
};

// What `program` throws is said, with the time.
inline std::string saying_when(const std::function<std::string()>& program) {
  try {
    return program();
  } catch (const Error& error) {
    std::printf("ended at %.1f: %s\n", now_ms(), error.what());
    std::fflush(stdout);
    throw;
  }
}

// Arguments: a directory, how far to count.
inline std::string count(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  if (resolver.task_type() != "chief") {
    const Program program(strategy, arguments[0], false);
    program.declare_step(*resolver.task_id());
    Server server(resolver, quick());
    std::printf("serves\n");
    std::fflush(stdout);
    return std::to_string(server.join());
  }
  const bool impatient = arguments.size() > 2;
  return saying_when([&] {
    const Program program(strategy, arguments[0], true);
    return program.count_to(std::stoll(arguments[1]), program.declare_step(0),
                            {.max_queued = 64,
                             .worker_pause = impatient ? 100ms : 1000ms,
                             .max_worker_losses = impatient ? 3 : 10,
                             .report_after = 2s});
  });
}

}  // namespace cohort::parameter_server_faults
