// Parameter servers of real processes that lose tasks. Each closure adds 1 to a counter on every ps task:
// whatever is killed, the counters end exact, and agree in every checkpoint that was taken meanwhile.
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace cohort {
namespace {

using distribute::ParameterServerStrategy;
using distribute::Server;
using distribute::ServerOptions;
using distribute::Variable;
using distribute::VariableAggregation;
using distribute::cluster_resolver::SimpleClusterResolver;
using distribute::cluster_resolver::TFConfigClusterResolver;
using distribute::coordinator::ClusterCoordinator;
using distribute::coordinator::ClusterCoordinatorOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using ::testing::Not;
using testing::TaskOutcome;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 60s;

// On the clock that all processes share.
double now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// The settings named Test in docs/faults.md.
ServerOptions quick() {
  return {.keepalive_time = 1s,
          .keepalive_timeout = 1s,
          .start_timeout = kPatience,
          .heartbeat_interval = 500ms,
          .heartbeat_timeout = 2s,
          .ps_lease = std::getenv("COHORT_TEST_LEASE") ? 1s : 60s};
}

// ---- What the tasks run.

// Waits as long as the file is there.
void hold(const std::string& file, const char* line) {
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
std::string saying_when(const std::function<std::string()>& program) {
  try {
    return program();
  } catch (const Error& error) {
    std::printf("ended at %.1f: %s\n", now_ms(), error.what());
    std::fflush(stdout);
    throw;
  }
}

// Arguments: a directory, how far to count.
std::string count(const Arguments& arguments) {
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

// A coordinator that is no task of the cluster, whose addresses are its arguments.
std::string count_from_outside(const Arguments& arguments) {
  const train::ClusterSpec spec(
      {{"worker", {arguments[2], arguments[3]}}, {"ps", {arguments[4], arguments[5]}}});
  const SimpleClusterResolver resolver(spec);
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  return saying_when([&] {
    const Program program(strategy, arguments[0], true);
    return program.count_to(std::stoll(arguments[1]), program.declare_step(0), {.max_queued = 64});
  });
}

// ---- The tests.

const TaskId kTheChief{"chief", 0};

class ParameterServerFaults : public ::testing::Test {
 protected:
  ParameterServerFaults() {
    std::string pattern = ::testing::TempDir() + "parameter_server_faults.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ParameterServerFaults() override { std::filesystem::remove_all(directory_); }

  MultiProcessOptions cluster(int workers, int64_t total) const {
    return {.jobs = {{"chief", 1}, {"worker", workers}, {"ps", 2}},
            .function = "count",
            .arguments = {directory_, std::to_string(total)},
            .deadline = 120s};
  }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  void touch(const std::string& name) const { std::ofstream(file(name)).flush(); }
  void remove(const std::string& name) const { std::filesystem::remove(file(name)); }

  static double time_in(const std::string& line) {
    return std::stod(line.substr(line.find(" at ") + 4));
  }
  static std::string chief_line(MultiProcessRunner& runner, const std::string& regex) {
    return runner.wait_for_line(kTheChief, regex, kPatience);
  }
  static void expect_exact(const std::map<TaskId, std::string>& values, int64_t total) {
    EXPECT_EQ(values.at(kTheChief), std::to_string(total) + " " + std::to_string(total));
  }

  std::string directory_;
};

int repetitions() {
  const char* more = std::getenv("COHORT_FAULT_REPETITIONS");
  return more ? std::atoi(more) : 1;
}

// "median 8, worst 12 of 20".
std::string summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  char text[100];
  std::snprintf(text, sizeof text, "median %.0f ms, worst %.0f ms of %zu", times[times.size() / 2],
                times.back(), times.size());
  return text;
}

TEST_F(ParameterServerFaults, Row1And2AKilledWorkersClosuresRunElsewhereOnce) {
  constexpr int64_t kTotal = 1200;
  std::vector<double> detected, back;
  for (int i = 0; i < repetitions(); ++i) {
    std::filesystem::remove_all(file("checkpoints"));
    touch("hold_end");  // until worker 1 is back
    touch("hold_worker_1");
    MultiProcessRunner runner(cluster(2, kTotal));
    runner.start();
    runner.wait_for_line({"worker", 1}, "holds a closure", kPatience);  // inside of one
    const double killed = now_ms();
    runner.kill({"worker", 1});
    detected.push_back(time_in(chief_line(runner, "worker 1 is lost at")) - killed);
    remove("hold_worker_1");
    runner.restart({"worker", 1});
    runner.wait_for_line({"worker", 1}, "serves", kPatience);
    const double restarted = now_ms();
    // The second time that it is there.
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    while (back.size() < detected.size()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << runner.log(kTheChief);
      const std::string log = runner.log(kTheChief);
      const size_t lost = log.find("worker 1 is lost");
      const size_t there = log.find("worker 1 is there at", lost);
      if (there != std::string::npos && log.find('\n', there) != std::string::npos) {
        back.push_back(std::max(0., time_in(log.substr(there)) - restarted));
      }
      std::this_thread::sleep_for(1ms);
    }
    remove("hold_end");
    expect_exact(runner.join(), kTotal);
  }
  std::printf("row 2: kill -9 inside a closure: lost after %s; back after its start: %s\n",
              summary(detected).c_str(), summary(back).c_str());
  EXPECT_LT(*std::max_element(detected.begin(), detected.end()), 500);
  EXPECT_LT(*std::max_element(back.begin(), back.end()), 5000);
}

TEST_F(ParameterServerFaults, Row3WhenAllWorkersAreKilledTheirClosuresWait) {
  constexpr int64_t kTotal = 800;
  MultiProcessRunner runner(cluster(2, kTotal));
  runner.start();
  chief_line(runner, "half");
  for (int worker = 0; worker < 2; ++worker) runner.kill({"worker", worker});
  chief_line(runner, "worker 0 is lost at");
  chief_line(runner, "worker 1 is lost at");
  for (int worker = 0; worker < 2; ++worker) runner.restart({"worker", worker});
  expect_exact(runner.join(), kTotal);
}

TEST_F(ParameterServerFaults, Row4AWorkerThatDiesAgainAndAgainIsGivenUp) {
  touch("hold_worker_0");
  MultiProcessOptions options = cluster(1, 100);
  options.arguments.push_back("impatient");
  MultiProcessRunner runner(options);
  runner.start();
  for (int i = 0; i < 4; ++i) {
    runner.wait_for_line({"worker", 0}, "holds a closure", kPatience);
    if (i < 3) {
      runner.restart({"worker", 0});  // which kills it
    } else {
      runner.kill({"worker", 0});
    }
  }
  const std::string line = chief_line(runner, "ended at");
  EXPECT_THAT(line, AllOf(HasSubstr("no worker is left"), HasSubstr("/job:worker/task:0"),
                          HasSubstr("4 losses in a row")));
  for (int ps = 0; ps < 2; ++ps) runner.kill({"ps", ps});
  runner.wait_all();
}

TEST_F(ParameterServerFaults, Row5AShortPauseOfAWorkerIsNothing) {
  constexpr int64_t kTotal = 800;
  MultiProcessRunner runner(cluster(2, kTotal));
  runner.start();
  chief_line(runner, "half");
  runner.pause({"worker", 1});
  std::this_thread::sleep_for(1s);  // what the row is about
  runner.resume({"worker", 1});
  expect_exact(runner.join(), kTotal);
  EXPECT_THAT(runner.log(kTheChief), Not(HasSubstr("is lost")));
}

TEST_F(ParameterServerFaults, Row6WhatAZombieStillDoesCountsForNothing) {
  constexpr int64_t kTotal = 400;
  std::vector<double> detected;
  for (int i = 0; i < repetitions(); ++i) {
    std::filesystem::remove_all(file("checkpoints"));
    touch("hold_end");  // the coordinator must be there when the worker goes on
    touch("hold_worker_1");
    MultiProcessRunner runner(cluster(2, kTotal));
    runner.start();
    runner.wait_for_line({"worker", 1}, "holds a closure", kPatience);
    const double stopped = now_ms();
    runner.pause({"worker", 1});
    detected.push_back(time_in(chief_line(runner, "worker 1 is lost at")) - stopped);
    remove("hold_worker_1");
    runner.resume({"worker", 1});  // it ends its closure, which others have by now
    runner.wait_for_line({"worker", 1}, "Server of .* stops: .*fenced", kPatience);
    remove("hold_end");
    const auto outcomes = runner.wait_all();
    for (const TaskOutcome& outcome : outcomes) {
      if (outcome.task == kTheChief) {
        EXPECT_EQ(outcome.value, "400 400") << outcome.error;
      } else if (outcome.task == TaskId{"worker", 1}) {
        EXPECT_EQ(outcome.code, Code::kAborted) << outcome.value;
      }
    }
  }
  std::printf("row 6: SIGSTOP of a worker: lost after %s; its late change counts for nothing\n",
              summary(detected).c_str());
  EXPECT_LT(*std::max_element(detected.begin(), detected.end()), 3500);
}

TEST_F(ParameterServerFaults, Row7AfterAKilledPsTheProgramGoesOnFromTheLastCheckpoint) {
  constexpr int64_t kTotal = 1000;
  std::vector<double> detected, restored;
  for (int i = 0; i < repetitions(); ++i) {
    std::filesystem::remove_all(file("checkpoints"));
    MultiProcessRunner runner(cluster(2, kTotal));
    runner.start();
    chief_line(runner, "half");
    const double killed = now_ms();
    runner.kill({"ps", 1});
    const std::string line = chief_line(runner, "ended at");
    detected.push_back(time_in(line) - killed);
    EXPECT_THAT(line, AllOf(HasSubstr("lost /job:ps/task:1 (" + runner.address({"ps", 1}) + ")"),
                            HasSubstr(file("checkpoints/ckpt-"))));
    const double restarted = now_ms();
    runner.restart({"ps", 1});
    runner.restart(kTheChief);
    const std::string again = chief_line(runner, "restored");
    EXPECT_GT(std::stoll(again.substr(again.find(' ') + 1)), 0);
    chief_line(runner, "counts from");
    restored.push_back(now_ms() - restarted);
    expect_exact(runner.join(), kTotal);
    EXPECT_THAT(runner.log(kTheChief), HasSubstr("this coordinator has generation 2"));
  }
  std::printf("row 7: kill -9 of a ps: named after %s; restored after its start: %s\n",
              summary(detected).c_str(), summary(restored).c_str());
  EXPECT_LT(*std::max_element(detected.begin(), detected.end()), 1000);
}

TEST_F(ParameterServerFaults, Row8APsThatIsKilledWhileVariablesAreMadeIsNamed) {
  touch("hold_creation");
  MultiProcessRunner runner(cluster(1, 100));
  runner.start();
  chief_line(runner, "holds creation");  // it has made the variable of ps 0
  runner.kill({"ps", 1});
  const double killed = now_ms();
  remove("hold_creation");
  const std::string line = chief_line(runner, "ended at");
  EXPECT_THAT(line, HasSubstr("/job:ps/task:1"));
  EXPECT_LT(time_in(line) - killed, 5000);
  for (const TaskId& task : {TaskId{"ps", 0}, TaskId{"worker", 0}}) runner.kill(task);
  for (const TaskOutcome& outcome : runner.wait_all()) {
    if (outcome.task == kTheChief) {
      EXPECT_EQ(outcome.code, Code::kUnavailable) << outcome.error;
    }
  }
}

TEST_F(ParameterServerFaults, Row9AStoppedPsIsNamedByItsSilence) {
  MultiProcessRunner runner(cluster(2, 1'000'000));
  runner.start();
  chief_line(runner, "counts from");
  const double stopped = now_ms();
  runner.pause({"ps", 0});
  const std::string line = chief_line(runner, "ended at");
  EXPECT_THAT(line, HasSubstr("lost /job:ps/task:0"));
  std::printf("row 9: SIGSTOP of a ps: named after %.0f ms\n", time_in(line) - stopped);
  EXPECT_LT(time_in(line) - stopped, 3500);
  runner.resume({"ps", 0});
  for (const TaskId& task : runner.tasks()) {
    if (task != kTheChief) runner.kill(task);
  }
  runner.wait_all();
}

TEST_F(ParameterServerFaults, Row10ANewCoordinatorGoesOnWithTheTasksThatStayed) {
  constexpr int64_t kTotal = 1000;
  std::vector<double> reconnected;
  for (int i = 0; i < repetitions(); ++i) {
    std::filesystem::remove_all(file("checkpoints"));
    MultiProcessRunner runner(cluster(2, kTotal));
    runner.start();
    chief_line(runner, "half");
    runner.kill(kTheChief);
    const double restarted = now_ms();
    runner.restart(kTheChief);
    chief_line(runner, "restored");
    chief_line(runner, "counts from");
    reconnected.push_back(now_ms() - restarted);
    expect_exact(runner.join(), kTotal);
    EXPECT_THAT(runner.log(kTheChief), HasSubstr("this coordinator has generation 2"));
  }
  std::printf("row 10: kill -9 of the coordinator: the next one counts after %s\n",
              summary(reconnected).c_str());
  EXPECT_LT(*std::max_element(reconnected.begin(), reconnected.end()), 10'000);
}

TEST_F(ParameterServerFaults, Row10WithoutANewCoordinatorTheLeaseEndsTheTasks) {
  MultiProcessOptions options = cluster(1, 1'000'000);
  options.environment["COHORT_TEST_LEASE"] = "1";
  MultiProcessRunner runner(options);
  runner.start();
  chief_line(runner, "half|counts from");
  runner.kill(kTheChief);
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_EQ(outcome.code, Code::kUnavailable) << outcome.task;
    if (outcome.task == kTheChief) continue;
    EXPECT_THAT(outcome.error, HasSubstr("lost the coordination service of /job:chief/task:0"));
  }
}

TEST_F(ParameterServerFaults, Row11AnOldCoordinatorThatGoesOnIsFenced) {
  constexpr int64_t kTotal = 400;
  MultiProcessOptions tasks = cluster(2, kTotal);
  tasks.jobs = {{"worker", 2}, {"ps", 2}};
  MultiProcessRunner servers(tasks);
  servers.start();
  for (const TaskId& task : servers.tasks()) servers.wait_for_line(task, "serves", kPatience);
  const auto outside = [&](const std::string& directory) {
    return MultiProcessOptions{
        .jobs = {{"outside", 1}},
        .function = "count_from_outside",
        .arguments = {directory, "1000000000", servers.address({"worker", 0}),
                      servers.address({"worker", 1}), servers.address({"ps", 0}),
                      servers.address({"ps", 1})},
        .deadline = 100s};
  };
  const TaskId me{"outside", 0};
  MultiProcessRunner old(outside(file("old")));
  old.start();
  old.wait_for_line(me, "counts from", kPatience);
  // Until there is something to go on from.
  while (!std::filesystem::exists(file("old/checkpoints/checkpoint")))
    std::this_thread::sleep_for(1ms);
  old.pause(me);
  MultiProcessRunner next(outside(file("next")));
  next.start();
  next.wait_for_line(me, "counts from", kPatience);
  const double resumed = now_ms();
  old.resume(me);
  const std::string line = old.wait_for_line(me, "ended at", kPatience);
  EXPECT_THAT(line, HasSubstr("fenced, generation 2"));
  std::printf("row 11: an old coordinator that goes on: fenced after %.0f ms\n",
              time_in(line) - resumed);
  EXPECT_EQ(old.wait_all()[0].code, Code::kAborted);
  EXPECT_THAT(next.log(me), Not(HasSubstr("ended at")));
  next.kill(me);
  next.wait_all();
  for (const TaskId& task : servers.tasks()) servers.kill(task, SIGTERM);
  for (const TaskOutcome& outcome : servers.wait_all()) EXPECT_EQ(outcome.value, "143");
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv, {{"count", cohort::count}, {"count_from_outside", cohort::count_from_outside}},
      [](int count, char** arguments) {
        ::testing::InitGoogleTest(&count, arguments);
        return RUN_ALL_TESTS();
      });
}
