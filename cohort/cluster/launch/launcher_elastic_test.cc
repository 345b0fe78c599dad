// Elastic jobs: the others go on when a worker is lost, and it alone starts again.
#include <gmock/gmock.h>
#include <signal.h>

#include "cohort/cluster/launch/testing_launcher.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using namespace std::chrono_literals;

// $n: how often this task has been started.
constexpr char kCount[] =
    "echo x >> \"starts $task\"; n=$(wc -l < \"starts $task\")\n"
    "wait_for() { for i in $(seq 4000); do [ -e \"$1\" ] && return; sleep 0.005; done; exit 9; }\n";

struct ElasticLauncherTest : LauncherTest {
  LaunchResult run_elastic(int least, int most, const std::string& script,
                           const LaunchOptions& options) {
    return run({.num_workers = most, .min_workers = least},
               std::string(kWaitForEnd) + kCount + script, options);
  }
};

std::vector<int> restarts(const LaunchResult& result) {
  std::vector<int> list;
  for (const TaskSummary& task : result.tasks) list.push_back(task.restarts);
  return list;
}

TEST_F(ElasticLauncherTest, AWorkerThatIsLostStartsAgainAlone) {
  const LaunchResult result =
      run_elastic(2, 3,
                  "echo \"may be $COHORT_ELASTIC_WORKERS\"\n"
                  "case \"$task $n\" in 'worker 1 1') kill -9 $$;; 'worker 1 2') exit 7;;\n"
                  "'worker 1 3') touch back;; esac; wait_for back",
                  {.restarts = 3});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(restarts(result), ElementsAre(0, 2, 0));
  EXPECT_THAT(output, HasSubstr("[worker:2] may be 2:3\n"));
  EXPECT_THAT(output, HasSubstr("worker:1 was ended by SIGKILL; the others go on; restart 1 of 3 "
                                "in 1 ms\n"));
  EXPECT_THAT(output, HasSubstr("worker:1 exited with 7; the others go on; restart 2 of 3 in 2 "
                                "ms\n"));
  EXPECT_THAT(output, HasSubstr("cohort launch: worker:1 has started again\n"));
}

TEST_F(ElasticLauncherTest, TheJobGoesOnWithoutAWorkerWhoseRestartsAreUsedUp) {
  const LaunchResult result =
      run_elastic(1, 2,
                  "[ \"$task\" = 'worker 1' ] && { [ $n = 3 ] && note_me lost; kill -9 $$; }\n"
                  "wait_for_end lost",
                  {.restarts = 2});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(restarts(result), ElementsAre(0, 2));
  EXPECT_THAT(output, HasSubstr("worker:1 was ended by SIGKILL; the job goes on without it\n"));
}

TEST_F(ElasticLauncherTest, FailsAsTheFirstOneDidWhenTooFewAreLeft) {
  const LaunchResult result =
      run_elastic(2, 3,
                  "case $task in worker\\ 2) note_me lost; exit 7;;\n"
                  "worker\\ 1) wait_for_end lost; exit 9;; esac; exec sleep 60",
                  {});
  EXPECT_EQ(result.exit_code, 7) << output;
  EXPECT_THAT(output, HasSubstr("worker:2 exited with 7; the job goes on without it\n"));
  EXPECT_THAT(output, HasSubstr("worker:1 exited with 9; only 1 of the 2 workers that the job "
                                "needs is left; ending the other tasks\n"));
  EXPECT_THAT(result.tasks[0].status->signal, Optional(SIGTERM));
  EXPECT_TRUE(result.tasks[0].stopped);
}

TEST_F(ElasticLauncherTest, AWrongCallIsNotTriedAgain) {
  LaunchResult result = run_elastic(
      1, 2, "[ \"$task\" = 'worker 1' ] && { note_me lost; exit 64; }; wait_for_end lost",
      {.restarts = 5});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(output, HasSubstr("worker:1 exited with 64; the job goes on without it\n"));
  EXPECT_THAT(restarts(result), ElementsAre(0, 0));
  result = run_elastic(1, 2, "exit 64", {.restarts = 5});
  EXPECT_EQ(result.exit_code, 64) << output;
  EXPECT_THAT(restarts(result), ElementsAre(0, 0));
}

TEST_F(ElasticLauncherTest, AWorkerThatWaitsForItsRestartIsNotStartedWhenTheOthersAreDone) {
  const LaunchResult result = run_elastic(
      2, 2, "[ \"$task\" = 'worker 1' ] && { note_me lost; kill -9 $$; }; wait_for_end lost",
      {.restarts = 1, .restart_delay = 1h});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(restarts(result), ElementsAre(0, 0));
  EXPECT_THAT(output, HasSubstr("worker:1 is not started again: the others are done\n"));
}

// What the workers had in memory is gone.
TEST_F(ElasticLauncherTest, FailsWhenNoneRuns) {
  const LaunchResult result = run_elastic(
      1, 2,
      "[ \"$task\" = 'worker 1' ] && { note_me lost; kill -9 $$; }; wait_for_end lost; exit 7",
      {.restarts = 3, .restart_delay = 1h});
  EXPECT_EQ(result.exit_code, 137) << output;
  EXPECT_THAT(restarts(result), ElementsAre(0, 0));
  EXPECT_THAT(output, HasSubstr("worker:0 exited with 7; no worker runs from which another could "
                                "take over; ending the other tasks\n"));
}

// It would wait for the others, or do their work again.
TEST_F(ElasticLauncherTest, AWorkerThatComesTooLateIsEndedAfterTheGrace) {
  const LaunchResult result =
      run_elastic(2, 2,
                  "[ \"$task\" = 'worker 0' ] && { wait_for back; exit 0; }\n"
                  "[ $n = 1 ] && kill -9 $$; touch back; exec sleep 60",
                  {.restarts = 1, .grace = 50ms});
  EXPECT_EQ(result.exit_code, 0) << output;
  EXPECT_THAT(result.tasks[1].status->signal, Optional(SIGTERM));
  EXPECT_TRUE(result.tasks[1].stopped);
}

TEST_F(ElasticLauncherTest, ASignalGoesToAllAndNothingStartsAgain) {
  std::thread interrupter =
      interrupt_when(SIGTERM, [&] { return has("ready 0") && has("ready 1"); });
  const LaunchResult result = run_elastic(1, 2,
                                          "trap 'echo saved; exit 143' TERM\n"
                                          "touch \"ready ${task#worker }\"\n"
                                          "while :; do sleep 0.01; done",
                                          {.restarts = 5});
  interrupter.join();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_THAT(output, HasSubstr("[worker:0] saved\n"));
  EXPECT_THAT(output, HasSubstr("[worker:1] saved\n"));
  EXPECT_THAT(restarts(result), ElementsAre(0, 0));
  EXPECT_THAT(output, Not(HasSubstr("restart")));
}

}  // namespace
}  // namespace cohort::internal
