// Real processes that get SIGTERM, at random moments: nothing is lost, and nothing done twice.
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
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

constexpr int kReplicas = 2;
constexpr unsigned kSeed = 20261123;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Counts the steps of all replicas in a variable, until it is told to end or has made a million steps.
// arguments: the directory; the grace period in ms; how long a step takes in us.
std::string count_steps(const std::vector<std::string>& arguments) {
  config::set_logical_device_configuration("CPU", kReplicas);
  const distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const Variable v(0., {.name = "v", .dtype = float64, .aggregation = VariableAggregation::SUM});
  scope.close();
  PreemptionCheckpointHandler handler(
      TFConfigClusterResolver(), train::Checkpoint({{"v", v}, {"strategy", strategy}}),
      {.checkpoint_dir = arguments.at(0),
       .termination_config = {.grace_period = milliseconds(std::stoi(arguments.at(1)))}});
  if (v.value().item<double>() != kReplicas * static_cast<double>(handler.total_run_calls())) {
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
        v.assign_add(1.);
      });
    });
    if (handler.total_run_calls() % 100 == 1)
      say(internal::str("call ", handler.total_run_calls()));
  }
  return "not told to end";
}

struct PreemptionBySignal : ::testing::Test {
  PreemptionBySignal() {
    directory = ::testing::TempDir() + "preemption_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~PreemptionBySignal() override { std::filesystem::remove_all(directory); }

  MultiProcessRunner runner(const std::string& grace_ms, const std::string& step_us) const {
    return MultiProcessRunner({.jobs = {{"worker", 1}},
                               .function = "count_steps",
                               .arguments = {directory + "/checkpoints", grace_ms, step_us},
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

  std::string directory;
  const TaskId worker = {"worker", 0};
};

// Again and again, at random moments: each process goes on exactly where its predecessor stopped.
TEST_F(PreemptionBySignal, LosesNothingAndExitsWith143) {
  std::mt19937 random(kSeed);
  int64_t calls_before = 0;
  for (int trial = 0; trial < 20; ++trial) {
    auto job = runner("0", "50");
    job.start();
    const std::string first = job.wait_for_line(worker, "begins at \\d+", seconds(30));
    EXPECT_EQ(std::stoll(first.substr(first.find("at ") + 3)), calls_before) << "seed " << kSeed;
    if (trial % 4 != 0) job.wait_for_line(worker, "call \\d+", seconds(30));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));  // any moment
    job.kill(worker, SIGTERM);
    if (trial % 3 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3'000));  // during the save
      try {
        job.kill(worker, SIGTERM);
      } catch (const FailedPreconditionError&) {  // it has ended already
      }
    }
    EXPECT_THAT(job.wait_all().at(0).error, HasSubstr("143")) << "seed " << kSeed;
    const auto [v, calls] = saved();
    EXPECT_EQ(v, kReplicas * static_cast<double>(calls)) << "seed " << kSeed << ", trial " << trial;
    EXPECT_GE(calls, calls_before);
    EXPECT_EQ(checkpoints(), 1);
    calls_before = calls;
  }
}

TEST_F(PreemptionBySignal, GoesOnDuringTheGracePeriod) {
  auto job = runner("1500", "50");
  job.start();
  job.wait_for_line(worker, "call \\d+", seconds(30));
  const auto told = std::chrono::steady_clock::now();
  job.kill(worker, SIGTERM);
  job.wait_for_line(worker, "saved '.*ckpt-1'", seconds(10));
  job.kill(worker, SIGTERM);  // ignored
  EXPECT_THAT(job.wait_all().at(0).error, HasSubstr("143"));
  const auto took = std::chrono::steady_clock::now() - told;
  EXPECT_GT(took, milliseconds(1000));
  EXPECT_LT(took, milliseconds(5000));
  EXPECT_THAT(job.log(worker), HasSubstr("ckpt-2'"));
  const auto [v, calls] = saved();
  EXPECT_EQ(v, kReplicas * static_cast<double>(calls));
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"count_steps", cohort::count_steps}},
                                             cohort::run_tests);
}
