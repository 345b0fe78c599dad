// Parameter servers whose ps tasks are lost or stand still.
#include "parameter_server_faults.h"

namespace cohort::parameter_server_faults {
namespace {

TEST_F(ParameterServerFaults, Row7AfterAKilledPsTheProgramGoesOnFromTheLastCheckpoint) {
  constexpr int64_t kTotal = 1000;
  std::vector<double> detected, restored;
  for (int i = 0; i < repetitions(1); ++i) {
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

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv, {{"count", count}});
}
