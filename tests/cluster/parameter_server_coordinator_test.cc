// Parameter servers whose coordinator is lost, or comes back late.
#include "parameter_server_faults.h"

namespace cohort::parameter_server_faults {
namespace {

using distribute::cluster_resolver::SimpleClusterResolver;

// A coordinator that is no task of the cluster, whose addresses are its arguments.
inline std::string count_from_outside(const Arguments& arguments) {
  const train::ClusterSpec spec(
      {{"worker", {arguments[2], arguments[3]}}, {"ps", {arguments[4], arguments[5]}}});
  const SimpleClusterResolver resolver(spec);
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  return saying_when([&] {
    const Program program(strategy, arguments[0], true);
    return program.count_to(std::stoll(arguments[1]), program.declare_step(0), {.max_queued = 64});
  });
}

TEST_F(ParameterServerFaults, Row10ANewCoordinatorGoesOnWithTheTasksThatStayed) {
  constexpr int64_t kTotal = 1000;
  std::vector<double> reconnected;
  for (int i = 0; i < repetitions(1); ++i) {
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
    EXPECT_THAT(runner.log(kTheChief), HasSubstr("; earlier ones are refused"));
  }
  std::printf("row 10: kill -9 of the coordinator: the next one counts after %s\n",
              summary(reconnected).c_str());
  EXPECT_LT(*std::max_element(reconnected.begin(), reconnected.end()), 10'000);
}

// A worker that is inside a closure of the coordinator that was killed.
TEST_F(ParameterServerFaults, Row10WhatAClosureOfTheLostCoordinatorStillDoesCountsForNothing) {
  constexpr int64_t kTotal = 1000;
  const TaskId held{"worker", 1};
  for (int i = 0; i < repetitions(1); ++i) {
    std::filesystem::remove_all(file("checkpoints"));
    MultiProcessRunner runner(cluster(2, kTotal));
    runner.start();
    chief_line(runner, "half");
    touch("hold_worker_1");
    runner.wait_for_line(held, "holds a closure", kPatience);
    touch("hold_end");  // the next coordinator must be there when the worker goes on
    runner.kill(kTheChief);
    runner.restart(kTheChief);
    chief_line(runner, "counts from");
    chief_line(runner, "worker 0 is there");
    remove("hold_worker_1");
    for (int ps = 0; ps < 2; ++ps) {
      runner.wait_for_line({"ps", ps}, "has refused .* stale call", kPatience);
    }
    chief_line(runner,
               "worker 1 is there");  // the same process, of the next coordinator's session now
    remove("hold_end");
    expect_exact(runner.join(), kTotal);
    EXPECT_THAT(runner.log(kTheChief), HasSubstr("; earlier ones are refused"));
  }
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
  const std::string state = file("old/checkpoints/checkpoint");
  const double until = now_ms() + 60'000;
  while (!std::filesystem::exists(state) && now_ms() < until) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(std::filesystem::exists(state));
  old.pause(me);
  MultiProcessRunner next(outside(file("next")));
  next.start();
  next.wait_for_line(me, "counts from", kPatience);
  const double resumed = now_ms();
  old.resume(me);
  const std::string line = old.wait_for_line(me, "ended at", kPatience);
  EXPECT_THAT(line, HasSubstr("fenced, generation "));
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
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv, {{"count", count}, {"count_from_outside", count_from_outside}});
}
