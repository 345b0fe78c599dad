// Tasks that fail before their first step under parameter servers, in a call of the model or in the
// program's own code: they end soon, with their own error, and nobody waits for a cluster that
// cannot form any more.
#include <ATen/ops/ones.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cohort {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TaskId;

// Longer than the test: who waits for the cluster to form is killed.
constexpr seconds kStart{600};
constexpr seconds kTest{60};

const TaskId kChief{"chief", 0};
const TaskId kFirstWorker{"worker", 0};
const TaskId kPs{"ps", 0};
constexpr int64_t kEndless = 1'000'000;

enum class Mistake { kNone, kLayer, kCompile, kLater };

// `goes_on`: until something is lost.
std::string train(const distribute::cluster_resolver::TFConfigClusterResolver& resolver,
                  Mistake mistake, bool goes_on) {
  const distribute::ParameterServerStrategy strategy(
      resolver, {.timeout = seconds(20), .server_options = {.start_timeout = kStart}});
  const auto scope = strategy.scope();
  const bool in_layer = mistake == Mistake::kLayer;
  const keras::Sequential model(
      {keras::layers::Dense(4, {.activation = in_layer ? "rleu" : "relu"}),
       keras::layers::Dense(1)});
  const bool in_compile = mistake == Mistake::kCompile;
  model.compile({.optimizer = "sgd", .loss = in_compile ? "mean_square_error" : "mse"});
  const Tensor x = at::ones({8, 2});
  const auto fit = [&](int64_t epochs) {
    return model.fit(x, at::ones({8, 1}), {.batch_size = 2, .epochs = epochs, .verbose = 0});
  };
  const keras::History history = fit(1);
  if (mistake == Mistake::kLater) throw NotFoundError("there is no file of labels");
  if (goes_on) fit(kEndless);
  return internal::str("epochs ", history.epoch.size());
}

// arguments: "layer", "compile" or "later", where the mistake is; who makes it (a task or "all";
// without a ps task the others go on until they notice); jobs that are never there.
std::string run_task(const std::vector<std::string>& arguments) {
  const distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const std::string job = resolver.task_type().value();
  if (std::find(arguments.begin() + 2, arguments.end(), job) != arguments.end()) return "absent";
  const std::string self = to_string(TaskId{job, resolver.task_id().value()});
  const bool fails = arguments[1] == "all" || arguments[1] == self;
  const std::map<std::string, Mistake> mistakes = {
      {"layer", Mistake::kLayer}, {"compile", Mistake::kCompile}, {"later", Mistake::kLater}};
  return train(resolver, fails ? mistakes.at(arguments[0]) : Mistake::kNone,
               arguments[1] == to_string(kPs));
}

// What each task returns, or its error.
std::map<TaskId, std::string> outcomes(std::vector<testing::JobSize> jobs,
                                       std::vector<std::string> arguments) {
  MultiProcessRunner runner({.jobs = std::move(jobs),
                             .function = "run_task",
                             .arguments = std::move(arguments),
                             .deadline = kTest});
  runner.start();
  std::map<TaskId, std::string> outcomes;
  for (const testing::TaskOutcome& one : runner.wait_all()) {
    const bool ok = one.code == Code::kOk;
    outcomes[one.task] = ok ? one.value : internal::str(code_name(one.code), ": ", one.error);
  }
  return outcomes;
}

// The names that nobody knows: of an activation, of a loss.
constexpr const char* kUnknown = "('rleu'|'mean_square_error')";

struct FitEarlyFailure : ::testing::TestWithParam<const char*> {
  // Of a cluster of a coordinator, `workers` and a ps task.
  static std::map<TaskId, std::string> run(int workers, const std::string& who,
                                           const std::vector<std::string>& absent = {}) {
    std::vector<std::string> arguments = {GetParam(), who};
    arguments.insert(arguments.end(), absent.begin(), absent.end());
    return outcomes({{"chief", 1}, {"worker", workers}, {"ps", 1}}, std::move(arguments));
  }
  static auto own_error() {
    return AllOf(StartsWith("INVALID_ARGUMENT"), ContainsRegex(kUnknown),
                 Not(HasSubstr("has failed before")));
  }
  static auto told_of(const TaskId& task) {
    return AllOf(StartsWith("INVALID_ARGUMENT"), ContainsRegex(kUnknown),
                 HasSubstr(to_string(task) + " has failed before its first step"));
  }
};

TEST_P(FitEarlyFailure, EndsSoonWhereTheCoordinatorIsNotThere) {
  const auto ended = run(1, to_string(kFirstWorker), {"chief", "ps"});
  EXPECT_THAT(ended.at(kFirstWorker), own_error());
}

TEST_P(FitEarlyFailure, IsSaidToThoseWhoHaveComeWhereOthersNeverCome) {
  const auto ended = run(2, to_string(kFirstWorker), {"ps"});
  EXPECT_THAT(ended.at(kFirstWorker), own_error());
  EXPECT_THAT(ended.at(kChief), told_of(kFirstWorker));
  EXPECT_THAT(ended.at({"worker", 1}), told_of(kFirstWorker));
}

// As after the loss of a worker.
TEST_P(FitEarlyFailure, OfOneWorkerLeavesTheOthersToTrain) {
  const auto ended = run(2, to_string(kFirstWorker));
  EXPECT_THAT(ended.at(kFirstWorker), own_error());
  EXPECT_EQ(ended.at(kChief), "epochs 1");
  EXPECT_EQ(ended.at({"worker", 1}), "epochs 1");
  EXPECT_EQ(ended.at({"ps", 0}), "epochs 1");
}

// Nobody waits for the others in vain, nor hears of a cluster that does not form.
TEST_P(FitEarlyFailure, OfAllIsWhatEachSays) {
  for (const auto& [task, outcome] : run(2, "all")) {
    EXPECT_THAT(outcome, own_error()) << task;
  }
}

TEST_P(FitEarlyFailure, OfTheCoordinatorIsSaidToTheOthers) {
  const auto ended = run(1, to_string(kChief));
  EXPECT_THAT(ended.at(kChief), own_error());
  for (const TaskId& task : {kFirstWorker, kPs}) {
    EXPECT_THAT(ended.at(task), AllOf(StartsWith("INVALID_ARGUMENT"), ContainsRegex(kUnknown)))
        << task;
  }
}

auto lost_because(const std::string& why) {
  return AllOf(StartsWith("UNAVAILABLE"), HasSubstr("lost " + to_string(kPs)),
               ContainsRegex(to_string(kPs) + " has failed" + why));
}

INSTANTIATE_TEST_SUITE_P(In, FitEarlyFailure, ::testing::Values("layer", "compile"),
                         [](const auto& one) { return std::string(one.param); });

TEST(FitFailure, OfAPsTaskIsWhyItIsLost) {
  const auto ended =
      outcomes({{"chief", 1}, {"worker", 1}, {"ps", 1}}, {"compile", to_string(kPs)});
  EXPECT_THAT(ended.at(kPs), FitEarlyFailure::own_error());
  for (const TaskId& task : {kChief, kFirstWorker}) {
    EXPECT_THAT(ended.at(task), lost_because(internal::str(" before its first step: .*", kUnknown)))
        << task;
  }
}

TEST(FitFailure, OfAPsTaskThatHasServedIsWhyItIsLost) {
  const auto ended = outcomes({{"chief", 1}, {"worker", 1}, {"ps", 1}}, {"later", to_string(kPs)});
  EXPECT_THAT(ended.at(kPs), "NOT_FOUND: there is no file of labels");
  for (const TaskId& task : {kChief, kFirstWorker}) {
    EXPECT_THAT(ended.at(task), lost_because(": there is no file of labels")) << task;
  }
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"run_task", cohort::run_task}},
                                             cohort::run_tests);
}
