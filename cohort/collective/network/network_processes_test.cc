// Groups of real processes over their servers, which lose tasks.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/testing_detection.h"
#include "cohort/collective/forming/form_group.h"
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_stranger.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::collective {
namespace {

using detection::print_end;
using detection::repetitions;
using distribute::Server;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using testing::MultiProcessRunner;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 20s;

GroupMember member_in(Server& server) {
  GroupMember member{.store = make_cluster_store(server.coordination()),
                     .deadline = std::chrono::steady_clock::now() + kPatience};
  for (const distribute::ClusterTask& task : server.coordination().wait_for_start().tasks) {
    if (task.task == server.task()) member.rank = static_cast<int>(member.tasks.size());
    member.tasks.push_back(task.task);
  }
  return member;
}

// ---- What the tasks run.

// Adds up values with the others until that fails, and says when and why. Of the argument "idle"
// the last task makes no calls, so that the others wait for it.
std::string add_up(const Arguments& arguments) {
  Server server(distribute::cluster_resolver::TFConfigClusterResolver(),
                detection::test_settings(kPatience));
  const GroupMember member = member_in(server);
  const auto group = make_transport_communicator(member, make_rpc_transport(member, server.core()));
  const bool is_idle = arguments.at(0) == "idle" && member.rank + 1 == member.size();
  std::vector<float> values(200'000, 1.0f);
  const Buffer buffer{values.data(), static_cast<int64_t>(values.size()), float32};
  try {
    group->barrier({.name = "begin", .timeout = kPatience});
    std::printf("started\n");
    std::fflush(stdout);
    if (is_idle) return std::to_string(server.join());
    for (int i = 0; i < 1'000'000; ++i) {
      std::fill(values.begin(), values.end(), 1.0f);
      all_reduce(*group, buffer, {.name = "sum", .timeout = 4s});
      if (values.back() != static_cast<float>(member.size())) throw InternalError("a wrong sum");
    }
  } catch (const Error& error) {
    print_end(error);
  }
  return "ended";
}

// The third task throws, and the others learn of it.
std::string give_up(const Arguments&) {
  Server server(distribute::cluster_resolver::TFConfigClusterResolver{});
  const GroupMember member = member_in(server);
  const auto group = make_transport_communicator(member, make_rpc_transport(member, server.core()));
  try {  // the error may overtake the end of the first barrier
    group->barrier({.name = "begin", .timeout = kPatience});
    if (member.rank == 2) {
      group->abort(std::make_exception_ptr(ResourceExhaustedError("its disk is full")));
    }
    group->barrier({.name = "step", .timeout = kPatience});
  } catch (const ResourceExhaustedError& error) {
    return error.what();
  }
  return "nothing happened";
}

// The bits of sums of many and of few floats, by whatever connects the tasks.
std::string sum_bits(const Arguments&) {
  Server server(distribute::cluster_resolver::TFConfigClusterResolver{});
  const GroupMember member = member_in(server);
  const auto group = form_group(member, server.core(), {}).communicator;
  std::mt19937 random(static_cast<unsigned>(member.rank));
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const size_t count : {size_t{100}, size_t{1'500'000}}) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random()) * 1e-5f - 2e4f;
    all_reduce(*group, {values.data(), static_cast<int64_t>(count), float32},
               {.name = "sum", .timeout = kPatience});
    for (const float value : values) {
      hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211ull;
    }
  }
  group->barrier({.name = "end", .timeout = kPatience});
  return std::to_string(hash);
}

// Over Gloo, where a stranger speaks to the first task as only a task should.
std::string meet_a_stranger(const Arguments&) {
  Server server(distribute::cluster_resolver::TFConfigClusterResolver(),
                {.heartbeat_interval = 500ms, .heartbeat_timeout = 2s});
  GroupMember member = member_in(server);
  if (member.rank == 0) {
    constexpr size_t kSendUnboundBuffer = 1;
    member.store =
        std::make_shared<StoreWithAStranger>(member.store, gloo_frame(kSendUnboundBuffer, 0, 1));
  }
  const auto group = make_transport_communicator(
      member, make_gloo_transport(member, "127.0.0.1", make_rpc_transport(member, server.core())));
  group->barrier({.name = "step", .timeout = kPatience});
  return "nothing happened";
}

// ---- The tests.

// How long each of the others took to name the last task.
std::vector<double> detection_times(const std::string& what, int signal, int repetitions) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    MultiProcessRunner runner({.jobs = {{"worker", 3}}, .function = "add_up", .arguments = {what}});
    runner.start();
    for (int task = 0; task < 3; ++task) {
      runner.wait_for_line({"worker", task}, "started", kPatience);
    }
    const double begin = detection::now_ms();
    runner.kill({"worker", 2}, signal);
    for (int task = 0; task < 2; ++task) {
      const std::string line = runner.wait_for_line({"worker", task}, "ended at", kPatience);
      EXPECT_THAT(line, AllOf(AnyOf(HasSubstr("UNAVAILABLE"), HasSubstr("DEADLINE_EXCEEDED")),
                              HasSubstr("/job:worker/task:2")));
      times.push_back(detection::time_in(line) - begin);
    }
    if (signal == SIGSTOP) runner.kill({"worker", 2});
  }
  std::printf("signal %d, %s: %s\n", signal, what.c_str(), detection::summary(times).c_str());
  return times;
}

TEST(NetworkProcesses, AKilledTaskIsNamedByAllThatExchangeWithIt) {
  EXPECT_THAT(detection_times("busy", SIGKILL, repetitions(3)),
              Each(Lt(internal::time_limit(1000))));
}

TEST(NetworkProcesses, AKilledTaskIsNamedByAllThatOnlyWaitForIt) {
  EXPECT_THAT(detection_times("idle", SIGKILL, repetitions(3)),
              Each(Lt(internal::time_limit(1000))));
}

TEST(NetworkProcesses, AStoppedTaskIsNamedByItsSilence) {
  EXPECT_THAT(detection_times("busy", SIGSTOP, 1), Each(Lt(internal::time_limit(4500))));
}

TEST(NetworkProcesses, ATaskThatGivesUpSaysWhy) {
  MultiProcessRunner runner({.jobs = {{"worker", 3}}, .function = "give_up"});
  runner.start();
  for (const auto& [task, why] : runner.join()) {
    EXPECT_EQ(why, "/job:worker/task:2 has given up: its disk is full") << task;
  }
}

// What the tasks' functions return, and how the log calls what connects them.
std::string bits_over(const std::string& by, bool own_hosts,
                      const std::map<std::string, std::string>& environment) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}},
                             .function = "sum_bits",
                             .environment = environment,
                             .own_hosts = own_hosts});
  runner.start();
  const auto values = runner.join();
  EXPECT_THAT(runner.log({"worker", 0}), HasSubstr(by));
  EXPECT_EQ(values.at({"worker", 0}), values.at({"worker", 1}));
  return values.at({"worker", 0});
}

TEST(NetworkProcesses, AllBackendsGiveTheSameBits) {
  const std::string in_memory = bits_over("exchanged in shared memory", false, {});
  const std::string over_calls =
      bits_over("travel over the servers' calls", true, {{"COHORT_INSECURE_NETWORK", "1"}});
  const std::string over_gloo =
      bits_over("travel over Gloo", true,
                {{"COHORT_INSECURE_NETWORK", "1"}, {"COHORT_TRUSTED_NETWORK", "1"}});
  EXPECT_EQ(over_calls, in_memory);
  EXPECT_EQ(over_gloo, in_memory);
}

// This is why Gloo takes a network that is declared trusted. Where the attempt to connect ends
// before Gloo reads the frame, the next one succeeds and nothing happens.
TEST(NetworkProcesses, AStrangersFrameEndsATaskWhichIsNamed) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "meet_a_stranger"});
    runner.start();
    const auto outcomes = runner.wait_all();
    if (outcomes[0].code == Code::kOk) {
      EXPECT_EQ(outcomes[1].code, Code::kOk) << outcomes[1].error;
      continue;
    }
    EXPECT_THAT(outcomes[0].error, HasSubstr("SIGABRT"));
    EXPECT_EQ(outcomes[1].code, Code::kUnavailable) << outcomes[1].error;
    EXPECT_THAT(outcomes[1].error, HasSubstr("/job:worker/task:0"));
    return;
  }
  FAIL() << "Gloo read no frame of a stranger in " << kTries << " groups";
}

}  // namespace
}  // namespace cohort::collective

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv,
      {{"add_up", cohort::collective::add_up},
       {"give_up", cohort::collective::give_up},
       {"meet_a_stranger", cohort::collective::meet_a_stranger},
       {"sum_bits", cohort::collective::sum_bits}},
      [](int count, char** arguments) {
        ::testing::InitGoogleTest(&count, arguments);
        return RUN_ALL_TESTS();
      });
}
