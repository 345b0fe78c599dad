// Clusters of real processes that lose tasks, or get wrong ones.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/testing_detection.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort {
namespace {

using detection::now_ms;
using detection::print_end;
using distribute::Server;
using distribute::ServerOptions;
using distribute::cluster_resolver::TFConfigClusterResolver;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using testing::TaskOutcome;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 20s;

ServerOptions quick() { return detection::test_settings(kPatience); }

// ---- What the tasks run.

constexpr int kRoundsPerLine = 50;

// Meets the others again and again; says how often, and when and why that ended.
std::string meet(const Arguments& arguments) {
  Server server(TFConfigClusterResolver(), quick());
  server.coordination().wait_for_start();
  std::printf("started\n");
  const int rounds = arguments.empty() ? 1'000'000'000 : std::stoi(arguments[0]);
  try {
    for (int i = 0; i < rounds; ++i) {
      server.coordination().barrier("round " + std::to_string(i));
      if (i % kRoundsPerLine == 0) std::printf("round %d passed\n", i);
    }
  } catch (const Error& error) {
    print_end(error);
    throw;
  }
  return "met";
}

// Another cluster spec in worker 1.
std::string disagree(const Arguments&) {
  const TFConfigClusterResolver resolver;
  train::ClusterSpec::Jobs jobs = resolver.cluster_spec().as_dict();
  if (*resolver.task_id() == 1) jobs["worker"][2] = "127.0.0.1:1";
  ServerOptions options = quick();
  options.job_name = "worker";
  options.task_index = *resolver.task_id();
  options.start_timeout = 3s;
  Server server(train::ClusterSpec(jobs), options);
  server.coordination().wait_for_start();
  return "";
}

// Worker 1 never comes.
std::string stay_away(const Arguments&) {
  const TFConfigClusterResolver resolver;
  if (*resolver.task_id() == 1) return "";
  ServerOptions options = quick();
  options.start_timeout = 500ms;
  Server server(resolver, options);
  server.coordination().wait_for_start();
  return "";
}

// Ends by a signal, in good order.
std::string serve(const Arguments&) {
  logging::set_level(logging::Level::kDebug);  // a task that leaves in good order is a detail
  Server server(TFConfigClusterResolver(), quick());
  server.coordination().wait_for_start();
  std::printf("started\n");
  return std::to_string(server.join());
}

// ---- The tests.

MultiProcessOptions workers(int count, const std::string& function, Arguments arguments = {}) {
  return {.jobs = {{"worker", count}}, .function = function, .arguments = std::move(arguments)};
}

// Kills a task again and again, and returns how long each of the others took to name it.
std::vector<double> detection_times(int repetitions, int signal) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    MultiProcessRunner runner(workers(3, "meet"));
    runner.start();
    for (int task = 0; task < 3; ++task)
      runner.wait_for_line({"worker", task}, "started", kPatience);
    const double killed = now_ms();
    runner.kill({"worker", 2}, signal);
    for (int task = 0; task < 2; ++task) {
      const std::string line = runner.wait_for_line({"worker", task}, "ended at", kPatience);
      EXPECT_THAT(line, AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("/job:worker/task:2")));
      times.push_back(detection::time_in(line) - killed);
    }
  }
  return times;
}

TEST(ClusterFaults, AKilledTaskIsNamedWithinASecond) {
  const std::vector<double> times = detection_times(detection::repetitions(3), SIGKILL);
  std::printf("kill -9 to a typed error: %s\n", detection::summary(times).c_str());
  EXPECT_THAT(times, Each(Lt(internal::time_limit(1000))));
}

TEST(ClusterFaults, AStoppedTaskIsNamedByItsSilence) {
  const std::vector<double> times = detection_times(1, SIGSTOP);
  // Dead after 2 s, and a beat and a half for the news.
  EXPECT_THAT(times, Each(AllOf(Lt(internal::time_limit(4500)), ::testing::Gt(500))));
}

TEST(ClusterFaults, AShortStopKillsNobody) {
  MultiProcessRunner runner(workers(3, "meet"));
  runner.start();
  runner.wait_for_line({"worker", 1}, "round 0 passed", kPatience);
  runner.pause({"worker", 1});
  std::this_thread::sleep_for(1s);  // what the row is about
  const std::string log = runner.log({"worker", 1});
  const int last = std::stoi(log.substr(log.rfind("\nround ") + sizeof("\nround ") - 1));
  runner.resume({"worker", 1});
  // Still in step, all of them.
  const std::string later = "round " + std::to_string(last + 10 * kRoundsPerLine) + " passed";
  for (int task = 0; task < 3; ++task) {
    runner.wait_for_line({"worker", task}, later, kPatience);
    EXPECT_EQ(runner.log({"worker", task}).find("ended at"), std::string::npos);
  }
  for (int task = 0; task < 3; ++task) runner.kill({"worker", task});
  runner.wait_all();
}

TEST(ClusterFaults, NoFaultIsNoDeathOnALoadedMachine) {
  MultiProcessRunner runner(workers(3, "meet", {"100"}));
  std::atomic<bool> done = false;
  std::vector<std::thread> spinners;
  for (int i = 0; i < 4; ++i) {
    spinners.emplace_back([&] {
      while (!done) {
      }
    });
  }
  runner.start();
  const auto outcomes = runner.wait_all();
  done = true;
  for (std::thread& spinner : spinners) spinner.join();
  for (const TaskOutcome& outcome : outcomes) EXPECT_EQ(outcome.value, "met") << outcome.error;
}

TEST(ClusterFaults, ASecondProcessOfATaskIsRefusedAndTheFirstGoesOn) {
  MultiProcessRunner runner(workers(2, "meet"));
  runner.start();
  for (int task = 0; task < 2; ++task) runner.wait_for_line({"worker", task}, "started", kPatience);
  const train::ClusterSpec spec(
      {{"worker", {runner.address({"worker", 0}), runner.address({"worker", 1})}}});
  internal::UniqueFd socket = internal::rpc::listen_at("127.0.0.1", 0);
  ServerOptions options = quick();
  options.job_name = "worker";
  options.task_index = 1;
  options.listen_fd = socket.release();
  Server second(spec, options);
  try {
    second.coordination().wait_for_start();
    ADD_FAILURE() << "two processes are worker 1";
  } catch (const AbortedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("already registered"));
  }
  // Still in step, both of them.
  for (int task = 0; task < 2; ++task) {
    EXPECT_EQ(runner.log({"worker", task}).find("ended at"), std::string::npos);
    runner.kill({"worker", task});
  }
  runner.wait_all();
}

TEST(ClusterFaults, ATakenPortIsNamedWithItsOwner) {
  MultiProcessRunner runner(workers(2, "serve"));
  runner.start();
  runner.wait_for_line({"worker", 0}, "started", kPatience);
  const train::ClusterSpec spec(
      {{"worker", {runner.address({"worker", 0}), runner.address({"worker", 1})}}});
  ServerOptions options = quick();
  options.job_name = "worker";
  try {
    Server second(spec, options);
    ADD_FAILURE() << "two servers at one port";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr(runner.address({"worker", 0})));
  }
  for (int task = 0; task < 2; ++task) runner.kill({"worker", task}, SIGTERM);
  runner.wait_all();
}

TEST(ClusterFaults, DifferentClusterSpecsAreRefused) {
  MultiProcessRunner runner(workers(2, "disagree"));
  runner.start();
  bool named = false;
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_NE(outcome.code, Code::kOk);
    named = named || (outcome.code == Code::kFailedPrecondition &&
                      outcome.error.find("127.0.0.1:1'") != std::string::npos);
  }
  EXPECT_TRUE(named);
}

TEST(ClusterFaults, WhoDoesNotComeIsNamed) {
  MultiProcessRunner runner(workers(2, "stay_away"));
  runner.start();
  const TaskOutcome outcome = runner.wait_all()[0];
  EXPECT_EQ(outcome.code, Code::kDeadlineExceeded);
  EXPECT_THAT(outcome.error, HasSubstr("/job:worker/task:1"));
}

TEST(ClusterFaults, ANameThatDoesNotResolveIsSaid) {
  internal::UniqueFd socket = internal::rpc::listen_at("127.0.0.1", 0);
  const train::ClusterSpec reachable(
      {{"worker",
        {"no-such-host.invalid:2222",
         "127.0.0.1:" + std::to_string(internal::rpc::listening_address(socket.get()).port)}}});
  ServerOptions options = quick();
  options.job_name = "worker";
  options.task_index = 1;
  options.listen_fd = socket.release();
  options.start_timeout = 1s;
  options.credentials.insecure = true;  // the name could be anybody's
  Server server(reachable, options);
  try {
    server.coordination().wait_for_start();
    ADD_FAILURE() << "a cluster of a host without an address";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  }
}

TEST(ClusterFaults, SignalsEndAServerInGoodOrder) {
  MultiProcessRunner runner(workers(2, "serve"));
  runner.start();
  for (int task = 0; task < 2; ++task) runner.wait_for_line({"worker", task}, "started", kPatience);
  runner.kill({"worker", 1}, SIGPIPE);
  runner.kill({"worker", 1}, SIGINT);
  runner.wait_for_line({"worker", 0}, "left: /job:worker/task:1", kPatience);
  runner.kill({"worker", 0}, SIGTERM);
  const auto values = runner.join();
  EXPECT_EQ(values.at({"worker", 0}), "143");
  EXPECT_EQ(values.at({"worker", 1}), "130");
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv,
                                             {{"meet", cohort::meet},
                                              {"disagree", cohort::disagree},
                                              {"stay_away", cohort::stay_away},
                                              {"serve", cohort::serve}},
                                             [](int count, char** arguments) {
                                               ::testing::InitGoogleTest(&count, arguments);
                                               return RUN_ALL_TESTS();
                                             });
}
