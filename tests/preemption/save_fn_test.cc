// Real processes whose save_fn fails, is slow, or is hit by a signal: all end with an error that
// says why, or with exit code 143 and a checkpoint from which they go on exactly.
#include <ATen/ops/ones.h>
#include <cohort/cluster/resolvers/simple_cluster_resolver.h>
#include <cohort/cluster/resolvers/tf_config_cluster_resolver.h>
#include <cohort/distribute/preemption/preemption_checkpoint_handler.h>
#include <cohort/distribute/strategies/multi_worker_mirrored_strategy.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "cohort/core/testing_folder.h"

namespace cohort {
namespace {

using distribute::cluster_resolver::TFConfigClusterResolver;
using distribute::experimental::PreemptionCheckpointHandler;
using internal::str;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using testing::TaskOutcome;

constexpr int kWorkers = 2;

// What a save_fn knows.
struct Saving {
  const distribute::MultiWorkerMirroredStrategy& strategy;
  const train::CheckpointManager& manager;
  const Variable& v;
  int tries = 0;

  bool is(int worker) const { return strategy.worker_id() == worker; }
  void save() const { manager.save({.check_interval = false}); }
  std::string own_file() const { return manager.directory() + "/own"; }
};

void throw_once(const Saving& saving, int worker) {
  if (saving.is(worker) && saving.tries == 1) throw ResourceExhaustedError("no room yet");
}

// Until it is said after which call all save for the last time: under the key of the second round
// where the first one's is.
void wait_until_time_is_over(const Saving& saving) {
  distribute::Coordination& cluster = saving.strategy.coordination();
  const std::string first = "/0/0/decision", second = "/1/0/decision";
  for (std::string key : cluster.list("preemption/")) {
    if (!key.ends_with(first)) continue;
    cluster.get(key.replace(key.size() - first.size(), first.size(), second), seconds(60));
  }
}

const std::map<std::string, std::function<void(const Saving&)>> kSaveFns = {
    {"saves", [](const Saving& saving) { saving.save(); }},
    {"saves in the background",
     [](const Saving& saving) {
       saving.manager.save({.check_interval = false, .checkpoint = {.enable_async = true}});
     }},
    {"saves at the chief, its own way",
     [](const Saving& saving) {
       if (saving.is(0)) std::ofstream(saving.own_file()) << saving.v.value().item<double>();
     }},
    {"saves as a group, but at the chief alone",
     [](const Saving& saving) {
       if (saving.is(0)) saving.save();
     }},
    {"saves for longer than the grace period",
     [](const Saving& saving) {
       wait_until_time_is_over(saving);
       saving.save();
     }},
    {"throws everywhere", [](const Saving&) { throw ResourceExhaustedError("no room today"); }},
    {"throws once in worker 0",
     [](const Saving& saving) {
       throw_once(saving, 0);
       saving.save();
     }},
    {"throws once in worker 1",
     [](const Saving& saving) {
       throw_once(saving, 1);
       saving.save();
     }},
    {"throws once in worker 1 when it has saved",
     [](const Saving& saving) {
       saving.save();
       throw_once(saving, 1);
     }},
    {"throws in worker 1 alone",
     [](const Saving& saving) {
       if (saving.is(1)) throw ResourceExhaustedError("no room today");
       saving.save();
     }},
    {"throws a number in worker 1",
     [](const Saving& saving) {
       if (saving.is(1)) throw 42;  // NOLINT
       saving.save();
     }},
    {"is killed in worker 0",
     [](const Saving& saving) {
       if (saving.is(0)) ::raise(SIGKILL);
       saving.save();
     }},
    {"is killed in worker 1",
     [](const Saving& saving) {
       if (saving.is(1)) ::raise(SIGKILL);
       saving.save();
     }},
    {"exits in worker 1",
     [](const Saving& saving) {
       if (saving.is(1)) ::_exit(3);
       saving.save();
     }},
    {"is told again",
     [](const Saving& saving) {
       ::raise(SIGTERM);
       saving.save();
       ::raise(SIGTERM);
     }},
};

// Counts the steps of all replicas in a variable. arguments: the directory; which save_fn; the
// grace period in ms; then a worker and the call in which it gets SIGTERM, as often as it does.
std::string count_steps(const std::vector<std::string>& arguments) {
  const distribute::MultiWorkerMirroredStrategy strategy;
  auto scope = strategy.scope();
  const Variable v(0., {.name = "v", .dtype = float64, .aggregation = VariableAggregation::SUM});
  scope.close();
  const train::CheckpointManager manager(train::Checkpoint({{"v", v}, {"strategy", strategy}}),
                                         arguments.at(0), {.max_to_keep = 1});
  Saving saving{strategy, manager, v};
  const auto& save_fn = kSaveFns.at(arguments.at(1));
  PreemptionCheckpointHandler handler(
      TFConfigClusterResolver(), manager,
      {.termination_config = {.grace_period = milliseconds(std::stoi(arguments.at(2))),
                              .save_fn = [&] {
                                ++saving.tries;
                                save_fn(saving);
                              }}});
  std::printf("begins at %ld\n", static_cast<long>(handler.total_run_calls()));
  std::fflush(stdout);
  if (v.value().item<double>() != kWorkers * static_cast<double>(handler.total_run_calls())) {
    throw DataLossError(str("restored v = ", v.value().item<double>()));
  }
  const auto step = [&] {
    for (size_t i = 3; i < arguments.size(); i += 2) {
      const bool is_now = std::stoll(arguments[i + 1]) == handler.total_run_calls() + 1;
      if (is_now && saving.is(std::stoi(arguments[i]))) ::raise(SIGTERM);
    }
    strategy.run([&] { v.assign_add(at::ones({})); });
  };
  while (handler.total_run_calls() < 100'000) {
    try {
      handler.run(step);
    } catch (const ResourceExhaustedError& error) {
      if (std::string_view(error.what()).ends_with("today")) throw;
      std::printf("failed: %s\n", error.what());
    }
  }
  return "not told to end";
}

struct PreemptionWithSaveFn : ::testing::Test {
  // How each worker ends.
  std::vector<TaskOutcome> run(const std::string& save_fn, const std::string& grace_ms = "0",
                               const std::vector<std::string>& signals = {"1", "5"}) {
    std::vector<std::string> arguments = {directory, save_fn, grace_ms};
    arguments.insert(arguments.end(), signals.begin(), signals.end());
    MultiProcessRunner job({.jobs = {{"worker", kWorkers}},
                            .function = "count_steps",
                            .arguments = arguments,
                            .deadline = seconds(90)});
    job.start();
    auto outcomes = job.wait_all();
    logs.clear();
    for (const auto& task : job.tasks()) logs.push_back(job.log(task));
    return outcomes;
  }
  // Both exit with 143 after the same call, from which the next start goes on. Returns its number.
  int64_t expect_resumed(const std::vector<TaskOutcome>& outcomes) {
    for (const auto& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("143"));
    const auto [v, calls] = saved();
    EXPECT_EQ(v, kWorkers * static_cast<double>(calls));
    EXPECT_GE(calls, 5);
    const std::vector<std::string> earlier = logs;
    for (const auto& outcome : run("saves", "0", {"0", std::to_string(calls + 3)})) {
      EXPECT_THAT(outcome.error, HasSubstr("143"));
    }
    for (const std::string& log : logs) EXPECT_THAT(log, HasSubstr(str("begins at ", calls, "\n")));
    logs = earlier;
    return calls;
  }
  // v and total_run_calls of the latest checkpoint.
  std::pair<double, int64_t> saved() const {
    const Variable v(0., {.name = "v", .dtype = float64});
    const distribute::cluster_resolver::SimpleClusterResolver alone{train::ClusterSpec()};
    const PreemptionCheckpointHandler handler(alone, train::Checkpoint({{"v", v}}),
                                              {.checkpoint_dir = directory});
    return {v.value().item<double>(), handler.total_run_calls()};
  }
  bool has_saved() const { return std::filesystem::exists(directory + "/checkpoint"); }

  const internal::TemporaryFolder folder;
  const std::string directory = folder.path();
  std::vector<std::string> logs;  // of the latest run
};

TEST_F(PreemptionWithSaveFn, SavesAndGoesOnExactly) { expect_resumed(run("saves")); }

TEST_F(PreemptionWithSaveFn, MaySaveInTheBackground) {
  expect_resumed(run("saves in the background"));
}

TEST_F(PreemptionWithSaveFn, WithAGracePeriodSavesTwice) {
  expect_resumed(run("saves", "300"));
  EXPECT_THAT(logs[0], HasSubstr("has saved after call "));
}

TEST_F(PreemptionWithSaveFn, MayTakeLongerThanTheGracePeriod) {
  expect_resumed(run("saves for longer than the grace period", "200"));
}

TEST_F(PreemptionWithSaveFn, SignalsToTwoWorkersAtTheSameStep) {
  expect_resumed(run("saves", "0", {"0", "5", "1", "5"}));
}

TEST_F(PreemptionWithSaveFn, SignalsToTwoWorkersAtDifferentSteps) {
  expect_resumed(run("saves", "0", {"0", "5", "1", "6"}));
}

TEST_F(PreemptionWithSaveFn, TwoSignalsToOneWorker) {
  expect_resumed(run("saves", "0", {"1", "5", "1", "5"}));
}

TEST_F(PreemptionWithSaveFn, SignalsDuringTheSave) { expect_resumed(run("is told again")); }

TEST_F(PreemptionWithSaveFn, WhereTheChiefAloneSavesTheOthersWaitForIt) {
  for (const auto& outcome : run("saves at the chief, its own way")) {
    EXPECT_THAT(outcome.error, HasSubstr("143"));
  }
  double v = 0;
  std::ifstream(directory + "/own") >> v;
  EXPECT_GE(v, kWorkers * 5.);
}

TEST_F(PreemptionWithSaveFn, ThatSavesAsAGroupAtTheChiefAloneIsRefusedInAll) {
  const auto outcomes = run("saves as a group, but at the chief alone");
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, Code::kFailedPrecondition);
  EXPECT_THAT(outcomes[0].error, HasSubstr("tasks make different collective calls"));
  EXPECT_THAT(outcomes[1].error, HasSubstr("save_fn of /job:worker/task:0 failed: tasks make"));
}

TEST_F(PreemptionWithSaveFn, ThatThrowsInAllEndsAllWithItsError) {
  for (const auto& outcome : run("throws everywhere")) {
    EXPECT_EQ(outcome.code, Code::kResourceExhausted);
    EXPECT_THAT(outcome.error, HasSubstr("no room today"));
  }
  EXPECT_FALSE(has_saved());
}

TEST_F(PreemptionWithSaveFn, ThatThrowsInOneEndsAllWithItsError) {
  const auto outcomes = run("throws in worker 1 alone");
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, Code::kResourceExhausted);
  EXPECT_THAT(outcomes[0].error, HasSubstr("save_fn of /job:worker/task:1 failed: no room today"));
  EXPECT_FALSE(has_saved());
}

TEST_F(PreemptionWithSaveFn, ThatThrowsOnceInTheChiefSavesAfterTheNextCall) {
  expect_resumed(run("throws once in worker 0"));
  EXPECT_THAT(logs[0], HasSubstr("failed: no room yet"));
  EXPECT_THAT(logs[1], HasSubstr("failed: save_fn of /job:worker/task:0 failed: no room yet"));
}

TEST_F(PreemptionWithSaveFn, ThatThrowsOnceInAWorkerSavesAfterTheNextCall) {
  expect_resumed(run("throws once in worker 1"));
  EXPECT_THAT(logs[0], HasSubstr("failed: save_fn of /job:worker/task:1 failed: no room yet"));
}

TEST_F(PreemptionWithSaveFn, ThatThrowsOnceWithAGracePeriodSavesAfterTheNextCall) {
  expect_resumed(run("throws once in worker 1", "300"));
}

TEST_F(PreemptionWithSaveFn, ThatThrowsWhenItHasSavedSavesAgain) {
  expect_resumed(run("throws once in worker 1 when it has saved"));
}

TEST_F(PreemptionWithSaveFn, ThatThrowsWhatIsNoErrorIsUnknownToTheOthers) {
  const auto outcomes = run("throws a number in worker 1");
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.code, Code::kUnknown);
  EXPECT_THAT(outcomes[0].error, HasSubstr("save_fn of /job:worker/task:1 failed"));
}

TEST_F(PreemptionWithSaveFn, AWorkerThatIsKilledInItIsNamed) {
  const auto outcomes = run("is killed in worker 1");
  EXPECT_EQ(outcomes[0].code, Code::kUnavailable);
  EXPECT_THAT(outcomes[0].error, HasSubstr("/job:worker/task:1"));
}

TEST_F(PreemptionWithSaveFn, AChiefThatIsKilledInItIsNamed) {
  const auto outcomes = run("is killed in worker 0");
  EXPECT_EQ(outcomes[1].code, Code::kUnavailable);
  EXPECT_THAT(outcomes[1].error, HasSubstr("/job:worker/task:0"));
}

TEST_F(PreemptionWithSaveFn, AWorkerThatExitsInItIsNamed) {
  const auto outcomes = run("exits in worker 1");
  EXPECT_EQ(outcomes[0].code, Code::kUnavailable);
  EXPECT_THAT(outcomes[0].error, HasSubstr("/job:worker/task:1"));
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"count_steps", cohort::count_steps}},
                                             cohort::run_tests);
}
