// Real processes that get SIGTERM, at random moments: nothing is lost, and nothing done twice.
#include <ATen/ops/ones.h>
#include <cohort/cluster/resolvers/simple_cluster_resolver.h>
#include <cohort/cluster/resolvers/tf_config_cluster_resolver.h>
#include <cohort/core/structure/device.h>
#include <cohort/distribute/preemption/preemption_checkpoint_handler.h>
#include <cohort/distribute/strategies/mirrored_strategy.h>
#include <cohort/distribute/strategies/multi_worker_mirrored_strategy.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

namespace cohort {
namespace {

using distribute::cluster_resolver::TFConfigClusterResolver;
using distribute::experimental::PreemptionCheckpointHandler;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using testing::TaskId;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Two replicas: of one process, or of as many workers.
distribute::Strategy make_strategy(int workers) {
  if (workers > 1) return distribute::MultiWorkerMirroredStrategy();
  config::set_logical_device_configuration("CPU", 2);
  return distribute::MirroredStrategy();
}

// Counts the steps of all replicas in a variable, until it is told to end or has made a million
// steps. arguments: the directory; the grace period in ms; how long a step takes in us; how many
// workers there are.
std::string count_steps(const std::vector<std::string>& arguments) {
  const distribute::Strategy strategy = make_strategy(std::stoi(arguments.at(3)));
  auto scope = strategy.scope();
  const Variable v(0., {.name = "v", .dtype = float64, .aggregation = VariableAggregation::SUM});
  scope.close();
  PreemptionCheckpointHandler handler(
      TFConfigClusterResolver(), train::Checkpoint({{"v", v}, {"strategy", strategy}}),
      {.checkpoint_dir = arguments.at(0),
       .termination_config = {.grace_period = milliseconds(std::stoi(arguments.at(1)))}});
  const double replicas = strategy.num_replicas_in_sync();
  if (v.value().item<double>() != replicas * static_cast<double>(handler.total_run_calls())) {
    throw DataLossError(internal::str("restored v = ", v.value().item<double>(), " after ",
                                      handler.total_run_calls(), " calls"));
  }
  say(internal::str("begins at ", handler.total_run_calls()));
  const auto work = std::chrono::microseconds(std::stoi(arguments.at(2)));
  while (handler.total_run_calls() < 1'000'000) {
    handler.run([&] {
      strategy.run([&] {
        const auto end = std::chrono::steady_clock::now() + work;
        while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
        v.assign_add(at::ones({}));
      });
    });
    if (handler.total_run_calls() % 100 == 1)
      say(internal::str("call ", handler.total_run_calls()));
  }
  return "not told to end";
}

// Two handlers, one after the other. Worker 1 is told to end in its last call of the first, when
// worker 0 has left that handler behind. arguments: the directory.
std::string count_in_two_phases(const std::vector<std::string>& arguments) {
  const distribute::MultiWorkerMirroredStrategy strategy;
  auto scope = strategy.scope();
  const Variable v(0., {.name = "v", .dtype = float64, .aggregation = VariableAggregation::SUM});
  scope.close();
  const auto count = [&] { strategy.run([&] { v.assign_add(at::ones({})); }); };
  {
    PreemptionCheckpointHandler first(TFConfigClusterResolver(), train::Checkpoint({{"v", v}}),
                                      {.checkpoint_dir = arguments.at(0) + "/first"});
    first.run([&] {
      count();
      if (strategy.worker_id() != 1) return;
      strategy.coordination().get("the first phase is over", seconds(40));
      ::raise(SIGTERM);
    });
  }
  if (strategy.worker_id() == 0) strategy.coordination().set("the first phase is over", "");
  PreemptionCheckpointHandler second(TFConfigClusterResolver(), train::Checkpoint({{"v", v}}),
                                     {.checkpoint_dir = arguments.at(0)});
  while (second.total_run_calls() < 100'000) second.run(count);
  return "not told to end";
}

// Worker 0 is told to end and comes to the agreed call. Worker 1 is there and makes no call, worker
// 2 is killed then.
// Returns in worker 0 what it learns, and how many ms after that. arguments: the directory.
std::string wait_for_others(const std::vector<std::string>& arguments) {
  using std::chrono::steady_clock;
  const distribute::MultiWorkerMirroredStrategy strategy;
  distribute::Coordination& cluster = strategy.coordination();
  const Variable v(0., {.name = "v", .dtype = float64});
  PreemptionCheckpointHandler handler(TFConfigClusterResolver(), train::Checkpoint({{"v", v}}),
                                      {.checkpoint_dir = arguments.at(0)});
  if (strategy.worker_id() == 1) return cluster.get("named", seconds(40));
  if (strategy.worker_id() == 2) {
    const auto has_come = [](const std::string& key) {
      return key.find("/arrived at ") != key.npos;
    };
    while (std::ranges::none_of(cluster.list("preemption/"), has_come)) std::this_thread::yield();
    cluster.set("killed at", std::to_string(steady_clock::now().time_since_epoch().count()));
    ::raise(SIGKILL);
  }
  ::raise(SIGTERM);
  try {
    while (true) handler.run([] {});
  } catch (const UnavailableError& error) {
    const steady_clock::duration killed_at(std::stoll(cluster.get("killed at", seconds(1))));
    cluster.set("named", "");
    const auto after = steady_clock::now().time_since_epoch() - killed_at;
    return internal::str(std::chrono::duration_cast<milliseconds>(after).count(),
                         " ms: ", error.what());
  }
}

struct PreemptionBySignal : ::testing::Test {
  PreemptionBySignal() {
    directory = ::testing::TempDir() + "preemption_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~PreemptionBySignal() override { std::filesystem::remove_all(directory); }

  MultiProcessRunner runner(int workers, const std::string& grace_ms) const {
    return MultiProcessRunner(
        {.jobs = {{"worker", workers}},
         .function = "count_steps",
         .arguments = {directory + "/checkpoints", grace_ms, "50", std::to_string(workers)},
         .deadline = seconds(60)});
  }
  // v and total_run_calls of the latest checkpoint.
  std::pair<double, int64_t> saved() const {
    const Variable v(0., {.name = "v", .dtype = float64});
    const distribute::cluster_resolver::SimpleClusterResolver alone{train::ClusterSpec()};
    const PreemptionCheckpointHandler handler(alone, train::Checkpoint({{"v", v}}),
                                              {.checkpoint_dir = directory + "/checkpoints"});
    return {v.value().item<double>(), handler.total_run_calls()};
  }
  int64_t checkpoints() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/checkpoints")) {
      count += entry.path().extension() == ".index" ? 1 : 0;
    }
    return count;
  }

  // Again and again, at random moments, for one of the workers: each run goes on exactly where its
  // predecessor stopped.
  void take_away(int workers, int times) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    int64_t calls_before = 0;
    for (int trial = 0; trial < times; ++trial) {
      SCOPED_TRACE(internal::str("seed ", seed, ", trial ", trial));
      auto job = runner(workers, "0");
      job.start();
      const TaskId told{"worker", static_cast<int>(random() % static_cast<unsigned>(workers))};
      const std::string first = job.wait_for_line(told, "begins at \\d+", seconds(30));
      EXPECT_EQ(std::stoll(first.substr(first.find("at ") + 3)), calls_before);
      if (trial % 4 != 0) job.wait_for_line(told, "call \\d+", seconds(30));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));  // any moment
      send(job, told);
      if (trial % 3 == 0) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(random() % 3'000));  // during the save
        for (const TaskId& task : job.tasks()) send(job, task);
      }
      for (const auto& outcome : job.wait_all()) EXPECT_THAT(outcome.error, HasSubstr("143"));
      const auto [v, calls] = saved();
      EXPECT_EQ(v, 2. * static_cast<double>(calls));
      EXPECT_GE(calls, calls_before);
      EXPECT_EQ(checkpoints(), 1);
      calls_before = calls;
    }
  }
  static void send(MultiProcessRunner& job, const TaskId& task) {
    try {
      job.kill(task, SIGTERM);
    } catch (const FailedPreconditionError&) {  // it has ended already
    }
  }

  std::string directory;
  const TaskId worker = {"worker", 0};
};

TEST_F(PreemptionBySignal, LosesNothingAndExitsWith143) { take_away(1, 10); }
TEST_F(PreemptionBySignal, OfOneWorkerMakesAllSaveTogetherAndExitWith143) { take_away(2, 5); }

TEST_F(PreemptionBySignal, GoesOnDuringTheGracePeriod) {
  auto job = runner(1, "1500");
  job.start();
  job.wait_for_line(worker, "call \\d+", seconds(30));
  const auto told = std::chrono::steady_clock::now();
  job.kill(worker, SIGTERM);
  job.wait_for_line(worker, "saved '.*ckpt-1'", seconds(10));
  job.kill(worker, SIGTERM);  // ignored
  EXPECT_THAT(job.wait_all().at(0).error, HasSubstr("143"));
  const auto took = std::chrono::steady_clock::now() - told;
  EXPECT_GT(took, milliseconds(1000));
  EXPECT_LT(took, milliseconds(20000));
  EXPECT_THAT(job.log(worker), HasSubstr("ckpt-2'"));
  const auto [v, calls] = saved();
  EXPECT_EQ(v, 2. * static_cast<double>(calls));
}

// Nobody waits for the worker that has ended its handler, and the next handler answers the signal.
TEST_F(PreemptionBySignal, AtTheEndOfAHandlerIsAnsweredByTheNext) {
  MultiProcessRunner job({.jobs = {{"worker", 2}},
                          .function = "count_in_two_phases",
                          .arguments = {directory + "/checkpoints"},
                          .deadline = seconds(60)});
  job.start();
  for (const auto& outcome : job.wait_all()) EXPECT_THAT(outcome.error, HasSubstr("143"));
  const auto [v, calls] = saved();
  EXPECT_GE(calls, 1);
  EXPECT_EQ(v, 2. * static_cast<double>(calls + 1));
}

TEST_F(PreemptionBySignal, ALostTaskIsNamedWhileAnotherOneDoesNotCome) {
  MultiProcessRunner job({.jobs = {{"worker", 3}},
                          .function = "wait_for_others",
                          .arguments = {directory + "/checkpoints"},
                          .deadline = seconds(60)});
  job.start();
  const std::string learned = job.wait_all().at(0).value;
  EXPECT_THAT(learned, HasSubstr("/job:worker/task:2 was lost"));
  // It learns in milliseconds; the one that does not come is waited for for minutes.
  EXPECT_LT(std::atoi(learned.c_str()), 10'000) << learned;
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv,
                                             {{"count_steps", cohort::count_steps},
                                              {"count_in_two_phases", cohort::count_in_two_phases},
                                              {"wait_for_others", cohort::wait_for_others}},
                                             cohort::run_tests);
}
