// Elastic clusters of real processes: the group outlives whatever task is lost, also the one that
// holds the coordination service.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/testing_detection.h"
#include "cohort/core/error.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort {
namespace {

using detection::now_ms;
using detection::print_end;
using detection::time_in;
using distribute::Server;
using distribute::ServerOptions;
using distribute::cluster_resolver::TFConfigClusterResolver;
using internal::membership::View;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 20s;

ServerOptions elastic(std::chrono::milliseconds start_wait) {
  ServerOptions options;
  options.start_timeout = kPatience;
  options.elastic = {.min_tasks = 1, .start_wait = start_wait};
  return options;
}

// ---- What the tasks run.

// Prints each group as it learns of it: "group at 5123.4: generation 2 of term 2 by
// /job:worker/task:1: 1 2 3".
class Printer final : public internal::MembershipListener {
 public:
  void on_view(const View& view) override {
    const std::lock_guard lock(mutex_);
    if (view.generation == 0 || view.generation == last_) return;
    last_ = view.generation;
    std::string members;
    for (const auto& member : view.live().members)
      members += " " + std::to_string(member.task.index);
    std::printf("group at %.1f: generation %lld of term %lld by %s:%s.\n", now_ms(),
                static_cast<long long>(view.generation), static_cast<long long>(view.term),
                to_string(view.coordinator).c_str(), members.c_str());
    std::fflush(stdout);
  }
  void on_end(const std::exception_ptr&) override {}

 private:
  std::mutex mutex_;
  int64_t last_ = 0;
};

// Says which groups it is in until it is killed or its membership ends.
std::string watch_groups(const Arguments& arguments) {
  const auto start_wait = std::chrono::milliseconds(std::stoi(arguments.at(0)));
  Server server(TFConfigClusterResolver(), elastic(start_wait));
  const auto printer = std::make_shared<Printer>();
  server.core().membership().listen(printer);
  // It may be in a group already.
  if (const auto view = server.core().membership().agent().view()) printer->on_view(*view);
  try {
    server.join();
  } catch (const Error& error) {
    print_end(error);
    throw;
  }
  return "ended";
}

// Sets a key of its own name in each group, meets the others there, and reads theirs.
std::string work_in_groups(const Arguments&) {
  Server server(TFConfigClusterResolver(), elastic(kPatience));
  internal::membership::MembershipAgent& agent = server.core().membership().agent();
  int64_t generation = 0;
  while (true) {
    const auto view = agent.wait_for_group(generation + 1, kPatience);
    generation = view->generation;
    const std::string round = "round " + std::to_string(generation);
    try {
      agent.set(round + to_string(server.task()), "here", {.this_generation = true});
      agent.barrier(round, {.timeout = 10s});
      const size_t there = agent.list(round).size();
      std::printf("met %zu in generation %lld\n", there, static_cast<long long>(generation));
      std::fflush(stdout);
      if (there == 2) return "met";
    } catch (const Error& error) {
      std::printf("again: %s\n", error.what());
      std::fflush(stdout);
    }
  }
}

// ---- The tests.

constexpr int kTasks = 4;
// Usually 40 ms; this is for machines that are busy with other things.
constexpr double kMostMs = 5000;

class ElasticClusterTest : public ::testing::Test {
 protected:
  void begin(const std::string& function, Arguments arguments, int tasks = kTasks) {
    runner_.emplace(MultiProcessOptions{.jobs = {{"worker", tasks}},
                                        .function = function,
                                        .arguments = std::move(arguments),
                                        .deadline = 100s,
                                        .environment = {{"COHORT_LOG_LEVEL", "info"}}});
    runner_->start();
  }
  void TearDown() override {
    if (!HasFailure() || !runner_) return;
    for (const TaskId& task : runner_->tasks()) {
      std::printf("--- the log of %s\n%s", to_string(task).c_str(), runner_->log(task).c_str());
    }
  }
  std::string group_of(int task, const std::string& what) {
    return runner_->wait_for_line({"worker", task}, "group at .*" + what, kPatience);
  }
  // Kills the task and returns when the last of the others had a group of `members`.
  double kill_and_wait(int task, const std::vector<int>& others) {
    std::string members;
    for (const int other : others) members += " " + std::to_string(other);
    const double died = now_ms();
    runner_->kill({"worker", task});
    double last = 0;
    for (const int other : others) {
      last = std::max(last, time_in(group_of(other, ":" + members + "\\.")));
    }
    return last - died;
  }

  std::optional<MultiProcessRunner> runner_;
};

// The holder is the first task to come: any.
int holder_in(const std::string& line) {
  const size_t at = line.find(" by /job:worker/task:") + 21;
  return std::stoi(line.substr(at));
}

// One after another, each time the task that holds the service, down to the last one.
TEST_F(ElasticClusterTest, OutlivesItsServiceAgainAndAgain) {
  std::vector<double> times;
  for (int i = 0; i < detection::repetitions(2); ++i) {
    begin("watch_groups", {"20000"});
    std::vector<int> alive = {0, 1, 2, 3};
    std::string group = group_of(0, ": 0 1 2 3\\.");
    while (alive.size() > 1) {
      const int holder = holder_in(group);
      std::erase(alive, holder);
      times.push_back(kill_and_wait(holder, alive));
      std::string members;
      for (const int task : alive) members += " " + std::to_string(task);
      group = group_of(alive.front(), ":" + members + "\\.");
    }
    runner_.reset();
  }
  std::printf("from the kill of the service's process to the next group: %s\n",
              detection::summary(times).c_str());
  EXPECT_LT(*std::max_element(times.begin(), times.end()), kMostMs);
}

TEST_F(ElasticClusterTest, OthersTakeTheLossOfAnyTask) {
  begin("watch_groups", {"20000"});
  const int holder = holder_in(group_of(0, ": 0 1 2 3\\."));
  const int other = holder == 3 ? 2 : 3;
  std::vector<int> alive = {0, 1, 2, 3};
  std::erase(alive, other);
  const double took = kill_and_wait(other, alive);
  std::printf("from a kill to the next group: %.0f ms\n", took);
  EXPECT_LT(took, kMostMs);
  runner_->restart({"worker", other});
  for (int task = 0; task < kTasks; ++task) group_of(task, "generation [3-9].*: 0 1 2 3\\.");
}

// Two at once, also the service's.
TEST_F(ElasticClusterTest, OutlivesHalfOfItsTasksOnOneHost) {
  begin("watch_groups", {"20000"});
  const int holder = holder_in(group_of(1, ": 0 1 2 3\\."));
  std::vector<int> alive = {0, 1, 2, 3};
  const int other = (holder + 1) % kTasks;
  std::erase(alive, holder);
  std::erase(alive, other);
  runner_->kill({"worker", other});
  const double took = kill_and_wait(holder, alive);
  std::printf("from the kill of two of four to the next group: %.0f ms\n", took);
  EXPECT_LT(took, kMostMs);
}

TEST_F(ElasticClusterTest, StartsWithoutThoseThatDoNotCome) {
  MultiProcessOptions options{
      .jobs = {{"worker", 3}}, .function = "watch_groups", .arguments = {"700"}, .deadline = 60s};
  runner_.emplace(std::move(options));
  runner_->start();
  runner_->kill({"worker", 0});
  group_of(1, "generation 1 of term 1.*: 1 2\\.");
  group_of(2, "generation 1 of term 1.*: 1 2\\.");
  runner_->restart({"worker", 0});
  for (int task = 0; task < 3; ++task) group_of(task, "generation 2.*: 0 1 2\\.");
}

// A stopped process is not dead: others take over by their majority, and what goes on later is none
// of theirs.
TEST_F(ElasticClusterTest, AServiceThatStoodStillIsFenced) {
  begin("watch_groups", {"20000"});
  const int holder = holder_in(group_of(0, ": 0 1 2 3\\."));
  runner_->pause({"worker", holder});
  std::vector<int> alive = {0, 1, 2, 3};
  std::erase(alive, holder);
  std::string members;
  for (const int task : alive) members += " " + std::to_string(task);
  for (const int task : alive) group_of(task, "generation 2 of term 2.*:" + members + "\\.");
  runner_->resume({"worker", holder});
  const std::string end = runner_->wait_for_line({"worker", holder}, "ended at .*", kPatience);
  EXPECT_THAT(end, ::testing::HasSubstr("ABORTED: fenced"));
  runner_->restart({"worker", holder});
  for (int task = 0; task < kTasks; ++task) group_of(task, "generation 3 of term 2.*: 0 1 2 3\\.");
}

TEST_F(ElasticClusterTest, CallsEndAndMayBeMadeAgain) {
  begin("work_in_groups", {}, 3);
  runner_->wait_for_line({"worker", 1}, "met 3 in generation 1", kPatience);
  runner_->kill({"worker", 0});
  for (const int task : {1, 2}) {
    runner_->wait_for_line({"worker", task}, "met 2 in generation", kPatience);
  }
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv,
      {{"watch_groups", cohort::watch_groups}, {"work_in_groups", cohort::work_in_groups}},
      [](int count, char** arguments) {
        ::testing::InitGoogleTest(&count, arguments);
        return RUN_ALL_TESTS();
      });
}
