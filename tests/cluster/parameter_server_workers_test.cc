// Parameter servers whose workers are lost or stand still.
#include "parameter_server_faults.h"

namespace cohort::parameter_server_faults {
namespace {

TEST_F(ParameterServerFaults, Row1And2AKilledWorkersClosuresRunElsewhereOnce) {
  constexpr int64_t kTotal = 1200;
  std::vector<double> detected, back;
  for (int i = 0; i < repetitions(1); ++i) {
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
  touch("hold_end");  // until both are back: one of them may do all that is left
  MultiProcessRunner runner(cluster(2, kTotal));
  runner.start();
  chief_line(runner, "half");
  for (int worker = 0; worker < 2; ++worker) runner.kill({"worker", worker});
  chief_line(runner, "worker 0 is lost at");
  chief_line(runner, "worker 1 is lost at");
  for (int worker = 0; worker < 2; ++worker) runner.restart({"worker", worker});
  for (int worker = 0; worker < 2; ++worker) {
    runner.wait_for_line({"worker", worker}, "serves", kPatience);
  }
  remove("hold_end");
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
  for (int i = 0; i < repetitions(1); ++i) {
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

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv, {{"count", count}});
}
