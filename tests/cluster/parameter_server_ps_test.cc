// Parameter servers whose ps tasks are lost or stand still.
#include "cohort/core/testing_time_limit.h"
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
  EXPECT_LT(*std::max_element(detected.begin(), detected.end()), internal::time_limit(1000));
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
  EXPECT_LT(time_in(line) - killed, internal::time_limit(5000));
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
  EXPECT_LT(time_in(line) - stopped, internal::time_limit(3500));
  runner.resume({"ps", 0});
  for (const TaskId& task : runner.tasks()) {
    if (task != kTheChief) runner.kill(task);
  }
  runner.wait_all();
}

// Half of what a save writes; some tenths of a second on any disk.
constexpr int64_t kBigRows = int64_t{1} << 18;
constexpr int64_t kBigColumns = 128;

// Saves a variable of which each ps task writes a part, twice. Arguments: a directory.
std::string save_twice(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(
      resolver, {.variable_partitioner = distribute::partitioners::FixedShardsPartitioner(2),
                 .timeout = 20s,
                 .server_options = quick()});
  const Variable table = [&] {
    const auto scope = strategy.scope();
    return Variable({.shape = {2 * kBigRows, kBigColumns}, .options = {.name = "table"}},
                    [](const distribute::ShardInfo& part) { return zeros(part.shape); });
  }();
  if (resolver.task_type() != "chief") return std::to_string(Server(resolver, quick()).join());
  const ClusterCoordinator coordinator(strategy);
  return saying_when([&] {
    const train::Checkpoint checkpoint({{"table", table}});
    for (int i = 1; i <= 2; ++i) {
      const std::string path = checkpoint.write(arguments[0] + "/saved/ckpt-" + std::to_string(i));
      std::printf("saved %s\n", path.c_str());
      std::fflush(stdout);
    }
    return std::string("saved");
  });
}

class ParameterServerSaves : public ParameterServerFaults {
 protected:
  std::vector<std::string> saved() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(file("saved"))) {
      names.push_back(entry.path().filename().string());
    }
    std::erase_if(names, [](const std::string& name) { return name == ".cohort-writer.lock"; });
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(ParameterServerSaves, APsThatIsKilledWhileItWritesIsNamedAndLeavesNothing) {
  MultiProcessRunner runner({.jobs = {{"chief", 1}, {"worker", 1}, {"ps", 2}},
                             .function = "save",
                             .arguments = {directory_},
                             .deadline = 120s});
  runner.start();
  chief_line(runner, "saved .*ckpt-1");
  const auto is_of_a_ps = [](const std::string& name) {
    return name.find("ckpt-2") != std::string::npos && name.ends_with("-1");
  };
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (std::vector<std::string> names; std::none_of(names.begin(), names.end(), is_of_a_ps);
       names = saved()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
  }
  runner.kill({"ps", 1});
  EXPECT_THAT(chief_line(runner, "ended at"), HasSubstr("lost /job:ps/task:1"));
  for (const TaskId& task : {TaskId{"ps", 0}, TaskId{"worker", 0}}) runner.kill(task);
  runner.wait_all();
  EXPECT_THAT(saved(),
              ::testing::ElementsAre("ckpt-1.data-00000-of-00003", "ckpt-1.data-00001-of-00003",
                                     "ckpt-1.data-00002-of-00003", "ckpt-1.index"));
}

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv, {{"count", count}, {"save", save_twice}});
}
