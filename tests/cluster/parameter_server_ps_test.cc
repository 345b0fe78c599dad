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
    EXPECT_THAT(runner.log(kTheChief), HasSubstr("; earlier ones are refused"));
  }
  std::printf("row 7: kill -9 of a ps: named after %s; restored after its start: %s\n",
              summary(detected).c_str(), summary(restored).c_str());
  EXPECT_LT(*std::max_element(detected.begin(), detected.end()), internal::time_limit(1000));
}

// The worker remembers the coordinator that the new ps tasks know nothing of.
TEST_F(ParameterServerFaults, Row7AlsoWhereNoPsTaskIsLeft) {
  constexpr int64_t kTotal = 1000;
  MultiProcessRunner runner(cluster(1, kTotal));
  runner.start();
  chief_line(runner, "half");
  for (const int ps : {0, 1}) runner.kill({"ps", ps});
  chief_line(runner, "ended at");
  for (const int ps : {0, 1}) runner.restart({"ps", ps});
  runner.restart(kTheChief);
  chief_line(runner, "restored");
  chief_line(runner, "worker 0 is there");
  expect_exact(runner.join(), kTotal);
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

// Counts until a ps task is lost. Arguments: a directory; "handled": the program goes on after the
// error, in whose scope its objects are, else the error ends them. Says how many milliseconds their
// end took.
std::string end_after_a_loss(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  double lost = 0;
  const auto count_until_lost = [&](const ClusterCoordinator& coordinator, const auto& step) {
    try {
      std::printf("counts\n");
      std::fflush(stdout);
      while (true) {
        for (int i = 0; i < 100; ++i) coordinator.schedule(step);
        coordinator.join();
      }
    } catch (const UnavailableError& error) {
      lost = now_ms();
      std::printf("caught %s\n", error.what());
      std::fflush(stdout);
      if (arguments[1] != "handled") throw;
    }
  };
  try {
    const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
    const Program program(strategy, arguments[0], false);
    const auto step = program.declare_step(0);
    if (resolver.task_type() != "chief") {
      return std::to_string(Server(resolver, quick()).join());
    }
    const ClusterCoordinator coordinator(strategy);
    count_until_lost(coordinator, step);
  } catch (const UnavailableError&) {
    if (lost == 0) throw;
  }
  std::printf("ended after %ld\n", static_cast<int64_t>(now_ms() - lost));
  std::fflush(stdout);
  return "";
}

class ParameterServerEnd : public ParameterServerFaults,
                           public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ways, ParameterServerEnd, ::testing::Values("handled", "thrown"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ParameterServerEnd, TheEndAfterALostPsIsQuick) {
  for (const int ps : {0, 1}) {
    MultiProcessRunner runner({.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 2}},
                               .function = "end_after_a_loss",
                               .arguments = {directory_, GetParam()},
                               .deadline = 120s});
    runner.start();
    chief_line(runner, "counts");
    const double killed = now_ms();
    runner.kill({"ps", ps});
    chief_line(runner, "caught");
    const double caught = now_ms();
    const std::string ended = chief_line(runner, "ended after");
    // Without a goodbye the others wait for another coordinator.
    if (GetParam() == std::string("thrown")) {
      for (const TaskId& task : runner.tasks()) {
        if (task != kTheChief && task != TaskId{"ps", ps}) runner.kill(task);
      }
    }
    runner.wait_all();
    const int64_t took = std::stoll(ended.substr(ended.rfind(' ') + 1));
    std::printf("kill -9 of ps %d: named after %.0f ms, the objects ended after %ld\n", ps,
                caught - killed, took);
    EXPECT_LT(took, internal::time_limit(300)) << ps;
  }
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
  return run_main(argc, argv,
                  {{"count", count}, {"save", save_twice}, {"end_after_a_loss", end_after_a_loss}});
}
