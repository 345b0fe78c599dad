// MultiWorkerMirroredStrategy between hosts whose network fails: partitions, lost packets, broken
// connections, slow links. Each task has a network namespace of its own; needs root.
// docs/faults.md.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/core/testing_time_limit.h"
#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Lt;
using testing::Partition;

constexpr int kLongTraining = 60;

// ---- What the tasks run.

// Before step 20 all wait until there is the file `go`, if its name is given.
std::string train_past_a_gate(const Arguments& arguments) {
  random::set_seed(8);
  Training training(make_strategy());
  training.run_to(kLongTraining, [&](int step) {
    if (step != 20 || arguments.empty()) return;
    std::printf("at the gate\n");
    while (!std::filesystem::exists(arguments[0])) std::this_thread::yield();
  });
  return training.result().substr(0, 16);
}

// Adds 400 kB four times, twice the values of before.
std::string add_up_much(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  Tensor value = at::full({100'000}, 1.0, float32);
  const double begin = now_ms();
  for (int i = 0; i < 4; ++i) {
    value =
        strategy
            .run([&](ReplicaContext& context) { return context.all_reduce(ReduceOp::SUM, value); })
            .value(0);
  }
  std::printf("a step of 400 kB takes %.0f ms\n", (now_ms() - begin) / 4);
  return internal::str(value.min().item<double>(), ' ', value.max().item<double>());
}

// Breaks every connection of this host.
void reset_connections() {
  internal::ChildProcess child({.program = internal::find_program("ss"),
                                .arguments = {"--kill", "--tcp", "state", "established"},
                                .environment = internal::own_environment(),
                                .stdout_fd = STDERR_FILENO,
                                .stderr_fd = STDERR_FILENO});
  pollfd ended = {child.pidfd(), POLLIN, 0};
  if (::poll(&ended, 1, 10'000) != 1 || !child.poll()->ok()) throw UnknownError("ss -K failed");
}

// Worker 1 loses its connections before step 12. Arguments: of checkpoints, the directory; "reset".
std::string train_through_a_reset(const Arguments& arguments) {
  bool is_done = arguments.at(1) != "reset";
  for (int attempt = 0;; ++attempt) {
    try {
      random::set_seed(8);
      keras::backend::clear_session();  // layers are named as in a process that begins
      const MultiWorkerMirroredStrategy strategy = make_strategy();
      Training training(strategy, {.directory = arguments.at(0)});
      training.run_to(kSteps, [&](int step) {
        if (step != 12 || strategy.worker_id() != 1 || std::exchange(is_done, true)) return;
        reset_connections();
      });
      return training.result().substr(0, 16);
    } catch (const UnavailableError& error) {
      std::printf("attempt %d: %s\n", attempt, error.what());
      if (attempt == 3) throw;
    }
  }
}

// ---- The tests.

// Values go over calls, or over Gloo.
class BetweenHosts : public MultiWorker, public ::testing::WithParamInterface<const char*> {
 protected:
  static MultiProcessOptions hosts(int count, const std::string& function,
                                   Arguments arguments = {}) {
    MultiProcessOptions options = workers(count, function, std::move(arguments));
    options.own_hosts = true;
    options.environment = {{"COHORT_INSECURE_NETWORK", "1"}};
    if (GetParam() == std::string("Gloo")) options.environment["COHORT_TRUSTED_NETWORK"] = "1";
    return options;
  }

  // Starts tasks that step for ever, does `fault` to them, and returns how each of them ended: how
  // long after it, in ms, and with what.
  struct Ending {
    double after_ms;
    std::string line;
  };
  static std::vector<Ending> endings(int count,
                                     const std::function<void(MultiProcessRunner&)>& fault) {
    MultiProcessRunner runner(hosts(count, "step_for_ever"));
    runner.start();
    for (int i = 0; i < count; ++i) runner.wait_for_line({"worker", i}, "started", kPatience);
    const double begin = now_ms();
    fault(runner);
    std::vector<Ending> endings;
    for (int i = 0; i < count; ++i) {
      const std::string line = runner.wait_for_line({"worker", i}, "ended at", kPatience);
      endings.push_back({std::stod(line.substr(line.find("at ") + 3)) - begin, line});
    }
    runner.wait_all();
    return endings;
  }

  static void report(const char* row, const std::vector<Ending>& endings) {
    double worst = 0;
    for (const Ending& ending : endings) worst = std::max(worst, ending.after_ms);
    std::printf("row %s over %s: worst %.0f ms of %zu tasks\n", row, GetParam(), worst,
                endings.size());
  }

  static void expect_unavailable_in_time(const std::vector<Ending>& endings) {
    for (const Ending& ending : endings) {
      EXPECT_THAT(ending.line, HasSubstr("UNAVAILABLE: "));
      EXPECT_THAT(ending.after_ms, Lt(internal::time_limit(4500))) << ending.line;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Over, BetweenHosts, ::testing::Values("calls", "Gloo"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(BetweenHosts, AHostThatIsCutOffInSilenceIsNamed) {
  const auto ended = endings(3, [](MultiProcessRunner& runner) {
    runner.partition({{"worker", 2}}, {{"worker", 0}, {"worker", 1}}, Partition::kSilent);
  });
  report("13", ended);
  expect_unavailable_in_time(ended);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ended[static_cast<size_t>(rank)].line, HasSubstr("/job:worker/task:2"));
  }
}

TEST_P(BetweenHosts, APartitionThatHealsInTimeChangesNothing) {
  const auto digests_of = [](MultiProcessRunner& runner) {
    std::vector<std::string> digests;
    for (const auto& [task, digest] : runner.join()) digests.push_back(digest);
    return digests;
  };
  MultiProcessRunner calm(hosts(2, "train_past_a_gate"));
  calm.start();
  const auto expected = digests_of(calm);
  MultiProcessRunner runner(hosts(2, "train_past_a_gate", {directory + "/go"}));
  runner.start();
  for (int i = 0; i < 2; ++i) runner.wait_for_line({"worker", i}, "at the gate", kPatience);
  runner.partition({{"worker", 0}}, {{"worker", 1}}, Partition::kSilent);
  std::ofstream(directory + "/go") << "go";
  std::this_thread::sleep_for(500ms);  // what the row is about
  runner.heal();
  EXPECT_EQ(digests_of(runner), expected);
  EXPECT_EQ(expected[0], expected[1]);
}

TEST_P(BetweenHosts, OfTwoHalvesNeitherGoesOnAlone) {
  const auto ended = endings(4, [](MultiProcessRunner& runner) {
    runner.partition({{"worker", 0}, {"worker", 1}}, {{"worker", 2}, {"worker", 3}},
                     Partition::kSilent);
  });
  report("15", ended);
  expect_unavailable_in_time(ended);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ended[static_cast<size_t>(rank)].line,
                AnyOf(HasSubstr("/job:worker/task:2"), HasSubstr("/job:worker/task:3")));
  }
  for (const int rank : {2, 3}) {
    EXPECT_THAT(ended[static_cast<size_t>(rank)].line,
                AnyOf(HasSubstr("/job:worker/task:0"), HasSubstr("/job:worker/task:1")));
  }
}

TEST_P(BetweenHosts, PacketsThatAreLostInOneDirectionEndBoth) {
  for (const int from : {0, 1}) {
    const auto ended = endings(2, [&](MultiProcessRunner& runner) {
      runner.cut_one_way({"worker", from}, {"worker", 1 - from});
    });
    report("16", ended);
    expect_unavailable_in_time(ended);
  }
}

TEST_P(BetweenHosts, AfterAResetTheGroupFormsAgainWithTheSameBits) {
  const auto run = [&](const std::string& what) {
    MultiProcessRunner runner(hosts(2, "train_through_a_reset", {directory + "/" + what, what}));
    runner.start();
    std::vector<std::string> digests;
    for (const auto& [task, digest] : runner.join()) digests.push_back(digest);
    if (what == "reset") {
      EXPECT_THAT(runner.log({"worker", 0}), HasSubstr("attempt 0: "));
    }
    return digests;
  };
  EXPECT_EQ(run("reset"), run("none"));
}

TEST_P(BetweenHosts, OverASlowLinkNobodyIsLost) {
  MultiProcessRunner runner(hosts(2, "add_up_much"));
  runner.limit_rate({"worker", 1}, 4'000'000);
  runner.start();
  for (const auto& [task, value] : runner.join()) {
    EXPECT_EQ(value, "16 16") << task;
    const std::string log = runner.log(task);
    const size_t begin = log.find("a step of");
    std::printf("row 18 over %s: %s\n", GetParam(),
                log.substr(begin, log.find('\n', begin) - begin).c_str());
  }
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv,
                  {{"step_for_ever", step_for_ever},
                   {"train_past_a_gate", train_past_a_gate},
                   {"add_up_much", add_up_much},
                   {"train_through_a_reset", train_through_a_reset}});
}
