// Programs of several calls (fit, then evaluate or fit again) on parameter servers of real
// processes, of which one is killed in a later call and started again: it begins with the first
// one.
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cohort/cluster/testing_detection.h"

namespace cohort {
namespace {

namespace callbacks = keras::callbacks;
using distribute::ParameterServerStrategy;
using distribute::ServerOptions;
using ::testing::HasSubstr;
using testing::MultiProcessRunner;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr int64_t kRows = 40;
constexpr int64_t kBatch = 4;
constexpr int kEpochs = 2;

ServerOptions quick() {
  ServerOptions options = detection::test_settings(kPatience);
  options.ps_lease = 60s;
  return options;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// ---- What the tasks run.

// At the fourth batch, as long as the file is there.
class Holds : public callbacks::Callback {
 public:
  explicit Holds(std::string file) : file_(std::move(file)) {}
  void on_train_batch_end(int64_t batch, const keras::Logs&) override { hold(batch); }
  void on_test_batch_end(int64_t batch, const keras::Logs&) override { hold(batch); }

 private:
  void hold(int64_t batch) const {
    if (batch != 3 || !std::filesystem::exists(file_)) return;
    say("holds");
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::filesystem::exists(file_) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
  }

  std::string file_;
};

// Returns the loss of the second call, which all tasks know.
std::string make_two_calls(const std::string& directory, const std::string& second) {
  const distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const auto scope = strategy.scope();
  const keras::Sequential model({keras::layers::Dense(1)});
  model.compile({.optimizer = keras::optimizers::SGD({.learning_rate = 0.01}), .loss = "mse"});
  const Tensor x = random::RandomGenerator::from_seed(4).normal({kRows, 4});
  const Tensor y = x.sum({1}, /*keepdim=*/true);
  const auto holds = std::make_shared<Holds>(directory + "/hold");

  model.fit(x, y,
            {.batch_size = kBatch,
             .epochs = kEpochs,
             .verbose = 0,
             .callbacks = {callbacks::BackupAndRestore(
                 directory + "/first", {.delete_checkpoint = second == "evaluate"})}});
  say("call 1 is over");
  double loss = 0;
  if (second == "evaluate") {
    loss = model.evaluate(x, y, {.batch_size = kBatch, .verbose = 0, .callbacks = {holds}})["loss"];
  } else {
    loss = model
               .fit(x, y,
                    {.batch_size = kBatch,
                     .epochs = kEpochs,
                     .verbose = 0,
                     .callbacks = {holds, callbacks::BackupAndRestore(directory + "/second",
                                                                      {.save_freq = 1})}})["loss"]
               .back();
  }
  if (resolver.task_type() == "chief") {
    say("steps " + std::to_string(model.optimizer().iterations().value().item<int64_t>()));
  }
  return std::to_string(loss);
}

// Returns the losses of all of its calls, which all tasks know.
std::string make_many_calls(const std::string& directory) {
  const distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const auto scope = strategy.scope();
  const keras::Sequential model({keras::layers::Dense(1)});
  model.compile({.optimizer = keras::optimizers::SGD({.learning_rate = 0.01}), .loss = "mse"});
  const Tensor x = random::RandomGenerator::from_seed(4).normal({kRows, 4});
  const Tensor y = x.sum({1}, /*keepdim=*/true);
  std::string losses = std::to_string(
      model.fit(x, y, {.batch_size = kBatch, .epochs = kEpochs, .verbose = 0})["loss"].back());
  for (int i = 0; i < 5; ++i) losses += " " + std::to_string(model.train_on_batch(x, y)["loss"]);
  say("call 6 is over");
  const auto holds = std::make_shared<Holds>(directory + "/hold");
  losses +=
      " " + std::to_string(
                model.fit(x, y, {.batch_size = kBatch, .verbose = 0, .callbacks = {holds}})["loss"]
                    .back());
  return losses;
}

// Argument: a directory.
std::string many_calls(const std::vector<std::string>& arguments) {
  return make_many_calls(arguments[0]);
}

// Arguments: a directory; "evaluate" or "fit".
std::string two_calls(const std::vector<std::string>& arguments) {
  try {
    return make_two_calls(arguments[0], arguments[1]);
  } catch (const Error& error) {
    say(std::string("ended: ") + error.what());
    throw;
  }
}

// ---- The tests.

const TaskId kTheChief{"chief", 0};
const TaskId kWorkers[] = {{"worker", 0}, {"worker", 1}};

class ParameterServerFitFaults : public ::testing::Test {
 protected:
  ParameterServerFitFaults() {
    std::string pattern = ::testing::TempDir() + "parameter_server_fit_faults.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::ofstream(directory_ + "/hold").flush();
  }
  ~ParameterServerFitFaults() override { std::filesystem::remove_all(directory_); }

  testing::MultiProcessOptions cluster(const std::string& function,
                                       const std::string& second = "") const {
    return {.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 1}},
            .function = function,
            .arguments = {directory_, second},
            .deadline = 120s};
  }
  void let_go() const { std::filesystem::remove(directory_ + "/hold"); }

  // All tasks are in their second call, the coordinator in the middle of it.
  static void wait_for_second_call(MultiProcessRunner& runner) {
    runner.wait_for_line(kTheChief, "^holds", kPatience);
    for (const TaskId& task : runner.tasks()) {
      runner.wait_for_line(task, "^call 1 is over", kPatience);
    }
  }
  static void expect_same_loss(const std::map<TaskId, std::string>& losses) {
    EXPECT_GT(std::stod(losses.at(kTheChief)), 0);
    for (const auto& [task, loss] : losses) EXPECT_EQ(loss, losses.at(kTheChief)) << task;
  }

  std::string directory_;
};

// The first call runs again, which is over in the workers: they say so and end, for their launcher
// to start them again. One of them has run no step of it even before.
TEST_F(ParameterServerFitFaults, WhereTheFirstCallRunsAgainWorkersStartAgainToo) {
  MultiProcessRunner runner(cluster("two_calls", "evaluate"));
  runner.start();
  wait_for_second_call(runner);
  runner.restart(kWorkers[1]);
  runner.wait_for_line(kWorkers[1], "^call 1 is over", kPatience);
  runner.restart(kTheChief);  // which kills it
  for (const TaskId& worker : kWorkers) {
    runner.wait_for_line(worker, "^ended: .*the coordinator was started again", kPatience);
    runner.restart(worker);
  }
  wait_for_second_call(runner);  // held there, so that both workers find it
  let_go();
  expect_same_loss(runner.join());
  EXPECT_THAT(runner.log(kTheChief),
              HasSubstr("steps " + std::to_string(kEpochs * kRows / kBatch) + "\n"));
}

// The first call's backup says that it is over, so that nobody need go back.
TEST_F(ParameterServerFitFaults, WhereTheFirstCallIsOverAllGoOnInTheSecond) {
  MultiProcessRunner runner(cluster("two_calls", "fit"));
  runner.start();
  wait_for_second_call(runner);
  runner.kill(kTheChief);
  let_go();
  runner.restart(kTheChief);
  expect_same_loss(runner.join());
  for (const TaskId& worker : kWorkers) EXPECT_THAT(runner.log(worker), Not(HasSubstr("ended:")));
  EXPECT_THAT(runner.log(kTheChief),
              HasSubstr("steps " + std::to_string(2 * kEpochs * kRows / kBatch) + "\n"));
}

// However many there were.
TEST_F(ParameterServerFitFaults, AWorkerThatIsStartedAgainPassesByTheCallsThatAreOver) {
  MultiProcessRunner runner(cluster("many_calls"));
  runner.start();
  runner.wait_for_line(kTheChief, "^holds", kPatience);
  for (const TaskId& task : runner.tasks()) {
    runner.wait_for_line(task, "^call 6 is over", kPatience);
  }
  runner.restart(kWorkers[1]);  // which kills it
  runner.wait_for_line(kWorkers[1], "^call 6 is over", kPatience);
  let_go();
  const auto losses = runner.join();
  for (const auto& [task, one] : losses) EXPECT_EQ(one, losses.at(kTheChief)) << task;
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv, {{"two_calls", cohort::two_calls}, {"many_calls", cohort::many_calls}},
      cohort::run_tests);
}
