#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cohort/cluster/launch/process_group.h"
#include "cohort/cluster/launch/testing_launcher.h"
#include "cohort/core/host/cgroups.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using namespace std::chrono_literals;

TEST_F(LauncherTest, RunsAllTasksAndMarksTheirLines) {
  const LaunchResult result =
      run({.num_workers = 2}, "echo \"I am $task\"; echo to stderr >&2; printf 'no end'",
          {.summary = true});
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_EQ(result.tasks.size(), 2u);
  EXPECT_THAT(output, HasSubstr("[worker:0] I am worker 0\n"));
  EXPECT_THAT(output, HasSubstr("[worker:1] I am worker 1\n"));
  EXPECT_THAT(output, HasSubstr("[worker:1] to stderr\n"));
  EXPECT_THAT(output, HasSubstr("[worker:1] no end\n"));
  EXPECT_THAT(output, HasSubstr("\nworker:1  0"));
  EXPECT_THAT(output, Not(HasSubstr("\x1b")));
}

TEST_F(LauncherTest, TheFirstFailureEndsTheOthersAndIsTheExitCode) {
  const LaunchResult result =
      run({.num_workers = 3}, "[ \"$task\" = 'worker 1' ] && exit 7; exec sleep 60");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_THAT(result.tasks[0].status->signal, Optional(SIGTERM));
  EXPECT_TRUE(result.tasks[0].stopped);
  EXPECT_FALSE(result.tasks[1].stopped);
  EXPECT_THAT(output, HasSubstr("worker:1 exited with 7"));
  std::ostringstream summary;
  print_summary(result, summary);
  EXPECT_THAT(summary.str(), HasSubstr("task      exit      seconds  restarts\nworker:0  SIGTERM"));
  EXPECT_THAT(summary.str(), HasSubstr("worker:1  7"));
}

TEST_F(LauncherTest, RestartsWhatWasKilledAndNothingElse) {
  const std::string die_twice =
      "echo x >> \"starts $task\"\n"
      "[ \"$task\" = 'worker 1' ] && [ $(wc -l < \"starts $task\") -le 2 ] && kill -9 $$\nexit 0";
  LaunchResult result = run({.num_workers = 2}, die_twice, {.restarts = 2, .restart_each = true});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_EQ(result.tasks[1].restarts, 2);
  EXPECT_EQ(result.tasks[0].restarts, 0);
  EXPECT_THAT(output, HasSubstr("worker:1 was ended by SIGKILL; restart 2 of 2 in 2 ms"));

  result = run({.num_workers = 1}, "kill -9 $$", {.restarts = 1});
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.tasks[0].restarts, 1);
  result = run({.num_workers = 1}, "exit 64", {.restarts = 5});
  EXPECT_EQ(result.exit_code, 64);
  EXPECT_EQ(result.tasks[0].restarts, 0);
  result = run({.num_workers = 1}, "exit 138", {.restarts = 1});
  EXPECT_EQ(result.exit_code, 138);
  EXPECT_EQ(result.tasks[0].restarts, 1);
}

// Worker 0 has lost a peer, does not notice it, or is done already: all start again.
TEST_F(LauncherTest, ATaskThatIsKilledForMemoryIsSaidToBe) {
  std::filesystem::create_directory(folder + "/group");
  std::ofstream(folder + "/cgroup") << "0::/group\n";
  std::ofstream(folder + "/mountinfo") << "1 2 0:3 / " << folder << " rw - cgroup2 cgroup2 rw\n";
  std::ofstream(folder + "/group/memory.max") << "536870912\n";
  std::ofstream(folder + "/group/memory.events") << "oom 4\noom_kill 4\n";
  const std::string script =
      "echo x >> \"starts $task\"; [ $(wc -l < \"starts $task\") = 1 ] &&\n"
      "printf 'oom 5\noom_kill 5\n' > group/memory.events\n"
      "kill -9 $$";
  const LaunchResult result =
      run({.num_workers = 1}, script,
          {.restarts = 1,
           .memory_kills = {.count = [&] { return Cgroups(folder).oom_kills(); },
                            .limit_bytes = Cgroups(folder).memory_limit()}});
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_THAT(output, HasSubstr("worker:0 was ended by SIGKILL (probably out of memory: the cgroup "
                                "counted one more kill; its limit is 512 MiB); "));
  EXPECT_THAT(output, HasSubstr("worker:0 was ended by SIGKILL; ending the other tasks"));
}

TEST_F(LauncherTest, TasksInStepStartAgainTogether) {
  const std::string script =
      "echo x >> \"starts $task\"; starts=$(wc -l < \"starts $task\")\n"
      "[ $starts -gt 1 ] && exit 0\n"
      "[ \"$task\" = 'worker 1' ] && kill -9 $$\n"
      "[ \"$task\" = 'worker 0' ] && exit 138\n"
      "[ \"$task\" = 'worker 2' ] && exit 0\n"
      "trap '' TERM; while :; do sleep 60 & wait; done";
  const LaunchResult result =
      run({.num_workers = 4, .evaluator = true}, script, {.restarts = 1, .grace = 50ms});
  EXPECT_EQ(result.exit_code, 0) << output;
  for (int worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(result.tasks[static_cast<size_t>(worker)].restarts, 1) << worker;
    EXPECT_FALSE(result.tasks[static_cast<size_t>(worker)].stopped);
  }
  EXPECT_EQ(result.tasks[4].restarts, 0);
  EXPECT_THAT(output, HasSubstr("; all workers start again; restart 1 of 1 in 1 ms"));
}

TEST_F(LauncherTest, AFailureForGoodIsNoReasonToStartAgain) {
  const LaunchResult result = run({.num_workers = 2},
                                  "echo x >> \"starts $task\"\n"
                                  "[ \"$task\" = 'worker 1' ] && { touch lost; exit 138; }\n"
                                  "while [ ! -e lost ]; do sleep 0.001; done; exit 64",
                                  {.restarts = 3});
  EXPECT_EQ(result.exit_code, 64) << output;
  EXPECT_EQ(text_of("starts worker 0"), "x\n");
}

// In a job with ps the chief decides; the others are ended if they do not end by themselves.
TEST_F(LauncherTest, TheJobIsDoneWhenItsChiefIs) {
  const LaunchResult result = run({.num_workers = 1, .num_ps = 1},
                                  "case $task in chief*) exit 0;; worker*) exit 0;; esac\n"
                                  "trap '' TERM; while :; do sleep 60 & wait; done",
                                  {.grace = 50ms});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.tasks[2].status->signal, Optional(SIGKILL));
  EXPECT_TRUE(result.tasks[2].stopped);
}

TEST_F(LauncherTest, AJobWithPsEndsAsItsChiefDoes) {
  const std::string script = std::string(kWaitForEnd) +
                             "case $task in\n"
                             "worker\\ 0) note_me first; kill -9 $$;;\n"
                             "worker\\ 1) note_me second; exit 64;;\n"
                             "evaluator*) note_me third; exit 65;;\n"
                             "chief*) for one in first second third; do wait_for_end $one; done\n"
                             "  exit $(cat code);; esac\n"
                             "trap 'exit 0' TERM; while :; do sleep 0.01; done";
  const auto run_with = [&](const std::string& code) {
    for (const char* file : {"first", "second", "third"}) {
      std::filesystem::remove(folder + "/" + file);
    }
    std::ofstream(folder + "/code") << code << std::flush;
    return run({.num_workers = 3, .num_ps = 1, .evaluator = true}, script, {.grace = 50ms});
  };
  const LaunchResult result = run_with("0");
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(output, HasSubstr("worker:0 was ended by SIGKILL; the job goes on without it"));
  EXPECT_THAT(output, HasSubstr("worker:1 exited with 64; the job goes on without it"));
  EXPECT_THAT(output, HasSubstr("evaluator:0 exited with 65; the job goes on without it"));
  EXPECT_EQ(run_with("66").exit_code, 66) << output;
}

// Its chief has not said goodbye to it.
TEST_F(LauncherTest, AWorkerThatComesBackTooLateForTheChiefCostsNoGrace) {
  const LaunchResult result =
      run({.num_workers = 2, .num_ps = 1},
          std::string(kWaitForEnd) +
              "case $task in\n"
              "worker\\ 0) [ -e again ] || { touch again; note_me lost; kill -9 $$; }\n"
              "  note_me back; trap 'exit 0' TERM;\n"
              "  while :; do sleep 0.01; done;;\n"
              "chief*) wait_for_end lost; while [ ! -e back ]; do sleep 0.01; done\n"
              "  touch done; exit 0;; esac\n"
              "while [ ! -e done ]; do sleep 0.001; done",
          {.restarts = 1, .grace = std::chrono::hours(1)});
  EXPECT_EQ(result.exit_code, 0) << output;
  for (const TaskSummary& task : result.tasks) EXPECT_TRUE(task.status->ok()) << task.id.job;
}

// The chief's first program is lost after its goodbye, by which the others end; the second one
// waits for all of them.
constexpr char kGoodbyeTwice[] =
    "wait_for() { for i in $(seq 2000); do [ -e \"$1\" ] && return; sleep 0.01; done; exit 9; }\n"
    "echo x >> \"starts $task\"; n=$(wc -l < \"starts $task\"); touch \"up $n $task\"\n"
    "await_all() { wait_for \"up $n worker 0\"; wait_for \"up $n worker 1\"; wait_for \"up $n ps "
    "0\"; }\n"
    "case $task in\n"
    "chief*) await_all; touch \"bye $n\"\n"
    "  [ $n = 1 ] || exit 0\n"
    "  before_loss; kill -9 $$;;\n"
    "esac\n";

TEST_F(LauncherTest, AChiefThatIsLostAfterItsGoodbyeStartsAgainWithAllTasks) {
  const LaunchResult result = run(
      {.num_workers = 2, .num_ps = 1},
      std::string(kWaitForEnd) +
          "before_loss() { for one in w0 w1 p0; do wait_for_end $one; done; }\n" + kGoodbyeTwice +
          "case $task in worker\\ 0) note_me w0;; worker\\ 1) note_me w1;;\n"
          "ps*) note_me p0;; esac\n"
          "wait_for \"bye $n\"; exit 0",
      {.restarts = 1});
  EXPECT_EQ(result.exit_code, 0) << output;
  for (const TaskSummary& task : result.tasks) {
    EXPECT_EQ(task.restarts, 1) << task.id.job;
    EXPECT_TRUE(task.status->ok()) << task.id.job;
  }
  EXPECT_THAT(output, HasSubstr("ended by the chief's goodbye start again with it"));
}

// One ends while the chief waits for its restart, one only after it.
TEST_F(LauncherTest, TasksThatEndByAGoodbyeAfterTheChiefWasLostStartAgain) {
  const LaunchResult result =
      run({.num_workers = 2, .num_ps = 1},
          std::string(kWaitForEnd) + "before_loss() { note_me chief; }\n" + kGoodbyeTwice +
              "[ $n = 1 ] && case $task in\n"
              "ps*) wait_for chief; wait_for_end chief;;\n"
              "worker\\ 0) wait_for 'starts chief 0'\n"
              "  while [ $(wc -l < 'starts chief 0') = 1 ]; do sleep 0.01; done;; esac\n"
              "wait_for \"bye $n\"; exit 0",
          {.restarts = 1});
  EXPECT_EQ(result.exit_code, 0) << output;
  for (const TaskSummary& task : result.tasks) {
    EXPECT_EQ(task.restarts, 1) << task.id.job;
    EXPECT_TRUE(task.status->ok()) << task.id.job;
  }
}

TEST_F(LauncherTest, ForEverIsLongEnoughToEnd) {
  const LaunchResult result =
      run({.num_workers = 1, .num_ps = 1},
          std::string(kWaitForEnd) +
              "case $task in chief*) note_me led; exit 0;; worker*) exit 0;; esac\n"
              "trap 'exit 3' TERM; wait_for_end led; exit 0",
          {.grace = std::chrono::milliseconds::max()});
  for (const TaskSummary& task : result.tasks) EXPECT_TRUE(task.status->ok()) << task.id.job;
}

// A lost ps ends the job, unless the chief needs it no more.
TEST_F(LauncherTest, TheChiefMayEndWellAfterALoss) {
  const LaunchResult result = run({.num_workers = 1, .num_ps = 1},
                                  std::string(kWaitForEnd) +
                                      "case $task in ps*) note_me lost; exit 64;;\n"
                                      "chief*) wait_for_end lost; touch done; exit 0;; esac\n"
                                      "while [ ! -e done ]; do sleep 0.001; done",
                                  {}, 20s);
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(output, HasSubstr("ps:0 exited with 64; ending the other tasks"));
}

TEST_F(LauncherTest, AJobWithPsThatHasNoWorkerLeftFails) {
  const LaunchResult result = run({.num_workers = 2, .num_ps = 1},
                                  "case $task in worker*) exit 65;; esac\n"
                                  "trap 'exit 0' TERM; while :; do sleep 0.01; done");
  EXPECT_EQ(result.exit_code, 65) << output;
  EXPECT_THAT(output, HasSubstr("exited with 65; the job goes on without it"));
  EXPECT_THAT(output, HasSubstr("exited with 65; ending the other tasks"));
}

TEST_F(LauncherTest, TheDelayIsTheFirstOneAgainOnceATaskHasRunForAWhile) {
  const std::string die = "kill -9 $$";
  run({.num_workers = 1}, die, {.restarts = 3, .steady_after = 0ms});
  EXPECT_THAT(output, HasSubstr("restart 3 of 3 in 1 ms"));
  run({.num_workers = 1}, die, {.restarts = 3, .steady_after = 1h});
  EXPECT_THAT(output, HasSubstr("restart 3 of 3 in 4 ms"));
}

TEST_F(LauncherTest, PassesSignalsOn) {
  std::thread interrupter =
      interrupt_when(SIGINT, [&] { return has("ready 0") && has("ready 1"); });
  const LaunchResult result =
      run({.num_workers = 2},
          "trap 'echo saved; exit 130' INT; touch \"ready ${task#worker }\"\n"
          "while :; do sleep 0.01; done");
  interrupter.join();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(output, HasSubstr("[worker:0] saved\n"));
  EXPECT_THAT(output, HasSubstr("[worker:1] saved\n"));
  EXPECT_THAT(result.tasks[0].status->exit_code, Optional(130));
  EXPECT_FALSE(result.tasks[0].stopped);
}

TEST_F(LauncherTest, ATaskThatWritesWithoutEndLeavesItItsSignals) {
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::thread interrupter = interrupt_when(SIGINT, [&] { return has("ready"); });
  const LaunchResult result =
      run({.num_workers = 1}, "(sleep 0.05; touch ready) & exec yes", {.out = {nowhere.get()}});
  interrupter.join();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.tasks[0].status->signal, Optional(SIGINT));
}

TEST_F(LauncherTest, AReaderThatStandsStillLeavesItItsSignals) {
  std::thread interrupter = interrupt_when(SIGQUIT, [&] {
    int held = 0;
    return ::ioctl(ends[0], FIONREAD, &held) == 0 && held >= 60'000;
  });
  const LaunchResult result =
      run({.num_workers = 2}, "ulimit -c 0; [ \"$task\" = 'worker 1' ] && exit 0; exec yes",
          {.summary = true});
  interrupter.join();
  EXPECT_EQ(result.exit_code, 128 + SIGQUIT);
  EXPECT_THAT(result.tasks[0].status->signal, Optional(SIGQUIT));
  EXPECT_THAT(output, HasSubstr("[worker:0] y\n[worker:0] y\n"));
}

TEST_F(LauncherTest, TasksOutliveWhoReadsTheirLines) {
  ::close(ends[0]);
  ends[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct sigaction standard {};
  struct sigaction before {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &standard, &before);
  const LaunchResult result =
      run({.num_workers = 1}, "for i in 1 2 3; do echo $i; sleep 0.01; done; echo > done");
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(has("done"));
}

// What a script leaves running would hold the port that its restart needs.
TEST_F(LauncherTest, EndsWhatATaskLeavesRunning) {
  const LaunchResult result =
      run({.num_workers = 1},
          "echo $$ > group; [ -e ready ] && exit 0\n"
          "(trap 'echo saved; exit 0' TERM; touch ready; while :; do sleep 0.01; done) &\n"
          "while [ ! -e ready ]; do sleep 0.01; done\n"
          "echo $$ > first; kill -9 $$",
          {.restarts = 1});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_EQ(result.tasks[0].restarts, 1);
  EXPECT_THAT(output, HasSubstr("[worker:0] saved\n"));
  EXPECT_FALSE(group_lives(std::stoi(text_of("first"))));
  EXPECT_TRUE(group_lives(::getpgrp()));
}

// SIGTERM ends a shell at once, but not the program that it waits for.
TEST_F(LauncherTest, TheProgramOfAScriptHasTimeToSave) {
  std::thread interrupter = interrupt_when(SIGTERM, [&] { return has("ready"); });
  const LaunchResult result = run({.num_workers = 1},
                                  "/bin/sh -c 'trap \"echo saved; exit 0\" TERM; touch ready; "
                                  "while :; do sleep 0.01; done'; true",
                                  {.restarts = 1});
  interrupter.join();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(output, HasSubstr("[worker:0] saved\n"));
}

}  // namespace
}  // namespace cohort::internal
