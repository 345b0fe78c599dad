// fit on parameter servers of real processes, where workers have objects of their own: what the
// coordinator changes between steps, and what it leaves behind.
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cohort/cluster/testing_detection.h"
#include "cohort/core/testing_folder.h"

namespace cohort {
namespace {

namespace callbacks = keras::callbacks;
using distribute::ParameterServerStrategy;
using distribute::cluster_resolver::TFConfigClusterResolver;
using testing::MultiProcessRunner;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

// ---- What the tasks run.

// A regression that every task declares alike.
struct Task {
  Task()
      : strategy(TFConfigClusterResolver(),
                 {.timeout = 20s, .server_options = detection::test_settings(kPatience)}),
        scope(strategy.scope()),
        model({keras::layers::Dense(1, {.use_bias = false, .kernel_initializer = "ones"})}) {
    model.compile({.optimizer = keras::optimizers::SGD({.learning_rate = 0.5}), .loss = "mse"});
  }
  std::vector<double> losses_of_fit(int epochs,
                                    const std::vector<callbacks::CallbackArgument>& all) {
    return model.fit(x, 3 * x.sum({1}, /*keepdim=*/true),
                     {.batch_size = 4, .epochs = epochs, .verbose = 0, .callbacks = all})["loss"];
  }

  const ParameterServerStrategy strategy;
  const distribute::Scope scope;
  const keras::Sequential model;
  const Tensor x = random::RandomGenerator::from_seed(4).normal({40, 4});
};

// Returns what the losses did, which all tasks know.
std::string set_rates(const std::vector<std::string>&) {
  Task task;
  const keras::optimizers::Optimizer& optimizer = task.model.optimizer();
  std::string found = std::to_string(optimizer.learning_rate());
  const auto add = [&](const std::vector<double>& losses) {
    const double change = losses.back() / losses.front() - 1;
    found += std::abs(change) < 1e-5 ? ", the same" : change < 0 ? ", less" : ", more";
  };
  add(task.losses_of_fit(3,
                         {callbacks::LearningRateScheduler([](int64_t, double) { return 0.0; })}));
  optimizer.set_learning_rate(0.01);  // in workers the coordinator's may still be to come
  found += optimizer.learning_rate() < 0.02 ? ", set" : ", not set";
  add(task.losses_of_fit(3, {}));
  return found;
}

// Argument: a directory.
std::string fail_and_go_on(const std::vector<std::string>& arguments) {
  Task task;
  task.model.optimizer().set_learning_rate(0.01);
  callbacks::BackupAndRestore backup(arguments[0] + "/backup");
  std::string found;
  try {
    task.losses_of_fit(3, {backup, callbacks::LambdaCallback({.on_epoch_begin = [](int64_t epoch) {
                             if (epoch == 1) throw DataLossError("as the test wants");
                           }})});
  } catch (const DataLossError&) {
    found = "failed, ";
  }
  return found + std::to_string(task.losses_of_fit(3, {backup}).size()) + " epochs";
}

// ---- The tests.

class ParameterServerFit : public ::testing::Test {
 protected:
  void expect_of_all(const std::string& function, const std::string& expected) const {
    MultiProcessRunner runner({.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 1}},
                               .function = function,
                               .arguments = {folder_.path().string()},
                               .deadline = 120s});
    runner.start();
    for (const auto& [task, found] : runner.join()) EXPECT_EQ(found, expected) << task;
  }

 private:
  internal::TemporaryFolder folder_;
};

// Callbacks are the coordinator's, the steps the workers'.
TEST_F(ParameterServerFit, WorkersUseTheRateThatTheCoordinatorHasSet) {
  expect_of_all("set_rates", "0.500000, the same, set, less");
}

// The backup that the failed one was given is still there, and was given its input.
TEST_F(ParameterServerFit, AfterOneThatFailedTheNextOneWorks) {
  expect_of_all("fail_and_go_on", "failed, 2 epochs");
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv, {{"set_rates", cohort::set_rates}, {"fail_and_go_on", cohort::fail_and_go_on}},
      cohort::run_tests);
}
