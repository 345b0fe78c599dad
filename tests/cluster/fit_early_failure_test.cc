// A task that fails alone, before its first step, under parameter servers: it ends soon, with its own
// error, and nobody waits for a cluster that cannot form any more.
#include <ATen/ops/ones.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cohort {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TaskId;

// Longer than the test: who waits for the cluster to form is killed.
constexpr seconds kStart{600};
constexpr seconds kTest{60};

const TaskId kFirstWorker{"worker", 0};

std::string train(const distribute::cluster_resolver::TFConfigClusterResolver& resolver,
                  bool fails) {
  const distribute::ParameterServerStrategy strategy(
      resolver, {.timeout = seconds(20), .server_options = {.start_timeout = kStart}});
  const auto scope = strategy.scope();
  const keras::Sequential model({keras::layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = fails ? "mean_square_error" : "mse"});
  const Tensor x = at::ones({8, 2});
  const keras::History history = model.fit(x, at::ones({8, 1}), {.batch_size = 2, .verbose = 0});
  return internal::str("epochs ", history.epoch.size());
}

// arguments: tasks that are never there. The first worker fails.
std::string run_task(const std::vector<std::string>& absent) {
  const distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const std::string job = resolver.task_type().value();
  for (const std::string& one : absent) {
    if (one == job) return "absent";
  }
  try {
    return train(resolver, TaskId{job, resolver.task_id().value()} == kFirstWorker);
  } catch (const Error& error) {
    return internal::str(code_name(error.code()), ": ", error.what());
  }
}

std::map<TaskId, std::string> outcomes(std::vector<testing::JobSize> jobs,
                                       std::vector<std::string> absent) {
  MultiProcessRunner runner({.jobs = std::move(jobs),
                             .function = "run_task",
                             .arguments = std::move(absent),
                             .deadline = kTest});
  runner.start();
  return runner.join();
}

const auto kOwnError = AllOf(StartsWith("INVALID_ARGUMENT"), HasSubstr("'mean_square_error'"),
                             Not(HasSubstr("has failed before")));
const auto kTold = AllOf(StartsWith("INVALID_ARGUMENT"),
                         HasSubstr("/job:worker/task:0 has failed before its first step"),
                         HasSubstr("'mean_square_error'"));

TEST(FitEarlyFailure, EndsSoonWhereTheCoordinatorIsNotThere) {
  const auto ended = outcomes({{"chief", 1}, {"worker", 1}, {"ps", 1}}, {"chief", "ps"});
  EXPECT_THAT(ended.at(kFirstWorker), kOwnError);
}

TEST(FitEarlyFailure, IsSaidToThoseWhoHaveComeWhereOthersNeverCome) {
  const auto ended = outcomes({{"chief", 1}, {"worker", 2}, {"ps", 1}}, {"ps"});
  EXPECT_THAT(ended.at(kFirstWorker), kOwnError);
  EXPECT_THAT(ended.at({"chief", 0}), kTold);
  EXPECT_THAT(ended.at({"worker", 1}), kTold);
}

// As after the loss of a worker.
TEST(FitEarlyFailure, OfOneWorkerLeavesTheOthersToTrain) {
  const auto ended = outcomes({{"chief", 1}, {"worker", 2}, {"ps", 1}}, {});
  EXPECT_THAT(ended.at(kFirstWorker), kOwnError);
  EXPECT_EQ(ended.at({"chief", 0}), "epochs 1");
  EXPECT_EQ(ended.at({"worker", 1}), "epochs 1");
  EXPECT_EQ(ended.at({"ps", 0}), "epochs 1");
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
