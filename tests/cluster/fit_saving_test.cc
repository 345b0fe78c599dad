// Whole models that jobs of several processes save: by ModelCheckpoint and by save, in step and on
// parameter servers. What is on disk is one model, which any other strategy loads.
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace cohort {
namespace {

namespace callbacks = keras::callbacks;
namespace layers = keras::layers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::MultiProcessRunner;
using ::testing::StartsWith;
using testing::TaskId;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr int kEpochs = 2;
constexpr int64_t kBatch = 8;

Tensor inputs() { return random::RandomGenerator::from_seed(4).normal({48, 6}); }
Tensor labels() { return at::remainder(inputs().sum({1}).mul(3).floor(), 3).to(int64); }

distribute::ServerOptions quick() {
  return {.keepalive_time = seconds(1),
          .keepalive_timeout = seconds(1),
          .start_timeout = seconds(40),
          .heartbeat_interval = milliseconds(500),
          .heartbeat_timeout = seconds(2)};
}

keras::ModelHandle make_model() {
  const auto x = keras::Input({6});
  const auto hidden =
      layers::Dense(16, {.activation = "relu",
                         .kernel_initializer = keras::initializers::GlorotUniform({.seed = 1})})(x);
  const auto y = layers::Dense(
      3, {.kernel_initializer = keras::initializers::GlorotUniform({.seed = 2})})(hidden);
  const keras::Functional model(x, y);
  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.01}),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  return model;
}

double fit_on(const keras::ModelHandle& model, int epochs,
              const std::vector<callbacks::CallbackArgument>& list = {}) {
  return model
      .fit(inputs(), labels(),
           {.batch_size = kBatch,
            .epochs = epochs,
            .verbose = 0,
            .callbacks = list,
            .shuffle = false})["loss"]
      .back();
}

double loss_of(const keras::ModelHandle& model) {
  return model.evaluate(inputs(), labels(), {.batch_size = kBatch, .verbose = 0})["loss"];
}

distribute::Strategy strategy_of(const std::string& kind) {
  if (kind == "workers") {
    return distribute::MultiWorkerMirroredStrategy({.server_options = quick()});
  }
  const distribute::cluster_resolver::TFConfigClusterResolver resolver;
  return distribute::ParameterServerStrategy(
      resolver, {.variable_partitioner = distribute::partitioners::FixedShardsPartitioner(2),
                 .timeout = seconds(20),
                 .server_options = quick()});
}

// arguments: a directory, "workers" or "servers". What the program of each task says at its end:
// the loss of the model that it has trained, and of that which it has loaded.
std::string train_and_save(const std::vector<std::string>& arguments) {
  const std::string& directory = arguments.at(0);
  const distribute::Strategy strategy = strategy_of(arguments.at(1));
  const auto scope = strategy.scope();
  const keras::ModelHandle model = make_model();
  fit_on(model, kEpochs,
         {callbacks::ModelCheckpoint(directory + "/{epoch:02d}"),
          callbacks::TensorBoard({.log_dir = directory + "/logs", .profile_batch = {2, 3}})});
  model.save(directory + "/whole");
  model.save_weights(directory + "/weights/w");
  const double trained = loss_of(model);
  const keras::ModelHandle again = keras::models::load_model(directory + "/whole");
  const double loaded = loss_of(again);
  // It goes on as the one that was saved.
  const double on = fit_on(model, 1);
  const double on_again = fit_on(again, 1);
  std::ostringstream text;
  text.precision(17);
  text << trained << ' ' << loaded << ' ' << on << ' ' << on_again;
  return text.str();
}

// arguments: a directory. ModelCheckpoint saves in each step, until somebody kills the task. Tells
// of steps from the first one on that finds a model: it is written beside the steps.
std::string save_each_step(const std::vector<std::string>& arguments) {
  const distribute::Strategy strategy = strategy_of("workers");
  const auto scope = strategy.scope();
  const keras::ModelHandle model = make_model();
  const std::string path = arguments.at(0) + "/model";
  callbacks::LambdaCallback tell({.on_train_batch_end = [path](int64_t, const keras::Logs&) {
    if (!std::filesystem::exists(path + "/model.json")) return;
    std::printf("step\n");
    std::fflush(stdout);
  }});
  fit_on(model, 10'000, {callbacks::ModelCheckpoint({.filepath = path, .save_freq = 1}), tell});
  return "";
}

// ---- The tests.

std::vector<double> numbers_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number; words >> number;) numbers.push_back(number);
  return numbers;
}

struct FitSaving : ::testing::Test {
  FitSaving() {
    directory = ::testing::TempDir() + "fit_saving_test.XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~FitSaving() override { std::filesystem::remove_all(directory); }

  std::vector<std::string> names_in(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/" + path)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  // A model in a directory, with so many files of data, and nothing that a process has begun or
  // held.
  void expect_one_model(const std::string& path, int parts) const {
    std::vector<std::string> names{"model.json", "variables-1.index"};
    for (int part = 0; part < parts; ++part) {
      names.push_back(internal::str("variables-1.data-0000", part, "-of-0000", parts));
    }
    EXPECT_THAT(names_in(path), UnorderedElementsAreArray(names)) << path;
  }

  // Runs it, and looks at what is on disk with one device.
  void expect_saved(const std::vector<testing::JobSize>& jobs, const std::string& kind) const {
    MultiProcessRunner runner({.jobs = jobs,
                               .function = "train",
                               .arguments = {directory, kind},
                               .deadline = seconds(120)});
    runner.start();
    const std::map<TaskId, std::string> told = runner.join();
    const std::vector<double> losses = numbers_of(told.begin()->second);
    ASSERT_EQ(losses.size(), 4u);
    for (const auto& [task, numbers] : told) EXPECT_EQ(numbers, told.begin()->second) << task;
    const double trained = losses[0];
    EXPECT_NEAR(losses[1], trained, 1e-6);
    // Each ps task writes what it holds, the coordinator the rest.
    const int parts = kind == "workers" ? 1 : 3;
    expect_one_model("whole", parts);
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      expect_one_model(internal::str("0", epoch), parts);
    }
    for (const char* name : {"whole", "02"}) {
      const keras::ModelHandle model = keras::models::load_model(directory + "/" + name);
      EXPECT_NEAR(loss_of(model), trained, 1e-5) << name;
      EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), kEpochs * 6) << name;
    }
    const keras::ModelHandle first = keras::models::load_model(directory + "/01");
    EXPECT_GT(loss_of(first), trained);
    const keras::ModelHandle weights = make_model();
    weights.load_weights(directory + "/weights/w");
    EXPECT_NEAR(loss_of(weights), trained, 1e-5);
    // Two workers of parameter servers take the steps in an order of their own.
    EXPECT_NEAR(losses[2], losses[3], kind == "workers" ? 1e-6 : 0.1);
  }

  std::string directory;
};

// TensorFlow's test_profiler_saves_on_both_chief_and_non_chief: each task traces its own steps, one
// tells the rest.
TEST_F(FitSaving, ByTwoWorkersIsOneModelAndATraceOfEach) {
  expect_saved({{"worker", 2}}, "workers");
  EXPECT_THAT(
      names_in("logs/train/plugins/profile/steps-2-3"),
      UnorderedElementsAre(EndsWith(".worker-0.trace.json"), EndsWith(".worker-0.xplane.pb"),
                           EndsWith(".worker-1.trace.json"), EndsWith(".worker-1.xplane.pb")));
  EXPECT_THAT(names_in("logs/train"),
              UnorderedElementsAre("plugins", StartsWith("events.out.tfevents.")));
}

TEST_F(FitSaving, ByParameterServersIsOneModelOfWholeVariables) {
  expect_saved({{"chief", 1}, {"worker", 2}, {"ps", 2}}, "servers");
}

TEST_F(FitSaving, AKillInTheMiddleOfASaveLeavesAWholeModel) {
  for (int i = 0; i < 3; ++i) {
    MultiProcessRunner runner({.jobs = {{"worker", 2}},
                               .function = "save_each_step",
                               .arguments = {directory},
                               .deadline = seconds(60)});
    runner.start();
    for (int step = 0; step < 4 + i; ++step) {
      runner.wait_for_line({"worker", i % 2}, "step", seconds(40));
    }
    runner.kill({"worker", i % 2});
    runner.wait_all();
    EXPECT_GT(loss_of(keras::models::load_model(directory + "/model")), 0);
  }
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv, {{"train", cohort::train_and_save}, {"save_each_step", cohort::save_each_step}},
      cohort::run_tests);
}
