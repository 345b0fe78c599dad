// The smaller callbacks.
#include "cohort/keras/callbacks/callbacks.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

#include "cohort/core/host/host_name.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/training/testing_fit.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::keras::callbacks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Says that the monitored number is this in each epoch.
class Says : public Callback {
 public:
  explicit Says(std::vector<double> values) : values_(std::move(values)) {}
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    logs.set("val_loss", values_.at(static_cast<size_t>(epoch)));
  }

 private:
  std::vector<double> values_;
};

struct CallbacksTest : ::testing::Test {
  CallbacksTest() {
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.5}), .loss = class_loss()});
    directory = ::testing::TempDir() + "callbacks_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~CallbacksTest() override { std::filesystem::remove_all(directory); }

  History fit(std::vector<CallbackArgument> callbacks, int64_t epochs) {
    return model.fit(image_batches(12, 6),
                     {.epochs = epochs, .verbose = 0, .callbacks = std::move(callbacks)});
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(directory + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory;
  const Sequential model = small_classifier();
};

TEST_F(CallbacksTest, EarlyStoppingWaitsForItsPatience) {
  EarlyStopping stop({.patience = 2});
  EXPECT_EQ(fit({Says({5, 4, 6, 4, 3, 3, 3, 1}), stop}, 8).epoch.size(), 4u);
  EXPECT_EQ(stop.stopped_epoch(), 3);
  EXPECT_EQ(stop.best_epoch(), 1);
  EXPECT_EQ(stop.best(), 4);
}

TEST_F(CallbacksTest, EarlyStoppingRestoresTheBestWeights) {
  std::vector<double> best;
  LambdaCallback keep({.on_epoch_end = [&](int64_t epoch, Logs&) {
    if (epoch == 1) best = all_weights(model);
  }});
  fit({Says({5, 4, 6, 6}), keep, EarlyStopping({.patience = 2, .restore_best_weights = true})}, 4);
  EXPECT_EQ(all_weights(model), best);
}

TEST_F(CallbacksTest, LearningRateScheduleSetsTheRateOfEachEpoch) {
  const History history = fit({LearningRateScheduler([](int64_t epoch, double rate) {
                                return epoch == 0 ? rate : rate / 2;
                              })},
                              3);
  EXPECT_THAT(history["lr"], ElementsAre(0.5, 0.25, 0.125));
}

TEST_F(CallbacksTest, ReduceLROnPlateauReduces) {
  const History history =
      fit({Says({5, 5, 5, 5, 5}),
           ReduceLROnPlateau({.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.2})},
          5);
  EXPECT_THAT(history["lr"], ElementsAre(0.5, 0.5, 0.5, 0.25, 0.25));
  EXPECT_NEAR(model.optimizer().learning_rate(), 0.2, 1e-7);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { ReduceLROnPlateau({.factor = 1}); }),
              HasSubstr("factor is 1"));
}

TEST_F(CallbacksTest, CSVLoggerWritesALineAnEpoch) {
  fit({Says({5, 4}), CSVLogger(directory + "/log.csv")}, 2);
  fit({Says({2}), CSVLogger(directory + "/log.csv", {.append = true})}, 1);
  std::vector<std::string> ends;
  std::istringstream lines(text_of("log.csv"));
  for (std::string line; std::getline(lines, line);) {
    ends.push_back(line.substr(0, 1) + line.substr(line.rfind(',')));
  }
  EXPECT_THAT(ends, ElementsAre("e,val_loss", "0,5", "1,4", "0,2"));
  EXPECT_THAT(thrown<NotFoundError>([&] { fit({CSVLogger(directory + "/no/log.csv")}, 1); }),
              HasSubstr("no/log.csv"));
}

TEST_F(CallbacksTest, CSVLoggerHasColumnsForAValidationThatComesLater) {
  model.fit(image_batches(12, 6), {.epochs = 2,
                                   .verbose = 0,
                                   .callbacks = {CSVLogger(directory + "/log.csv")},
                                   .validation_data = image_batches(12, 6),
                                   .validation_freq = 2});
  std::istringstream lines(text_of("log.csv"));
  std::string header, first, second;
  lines >> header >> first >> second;
  EXPECT_EQ(header, "epoch,loss,val_loss");
  EXPECT_THAT(first, ::testing::EndsWith(",NA"));
  EXPECT_THAT(second, ::testing::Not(HasSubstr("NA")));
  fit({CSVLogger(directory + "/without.csv")}, 1);
  EXPECT_THAT(text_of("without.csv"), ::testing::StartsWith("epoch,loss\n"));
}

TEST_F(CallbacksTest, TheNameSaysWhetherANumberIsToBecomeLarge) {
  const auto is_better_larger = [](const std::string& name) {
    return internal::Monitor("ModelCheckpoint", name, "auto").is_better(1, 0);
  };
  for (const char* name :
       {"acc", "val_accuracy", "top5acc", "val_auc", "auc_1", "val_accuracy_12"}) {
    EXPECT_TRUE(is_better_larger(name)) << name;
  }
  for (const char* name : {"val_loss", "val_account_loss", "accident_mae", "auc_gap",
                           "accuracy_loss", "acc_loss_1", "1", "_1", "auc1_"}) {
    EXPECT_FALSE(is_better_larger(name)) << name;
  }
}

TEST_F(CallbacksTest, OptionsAreCheckedAtOnce) {
  const auto refused = [](const auto& make) { return thrown<InvalidArgumentError>(make); };
  EXPECT_THAT(refused([] { EarlyStopping({.monitor = ""}); }), HasSubstr("monitor is empty"));
  EXPECT_THAT(refused([] { ReduceLROnPlateau({.patience = -1}); }), HasSubstr("patience is -1"));
  EXPECT_THAT(refused([] { ReduceLROnPlateau({.cooldown = -2}); }), HasSubstr("cooldown is -2"));
  EXPECT_THAT(refused([] { ReduceLROnPlateau({.min_lr = -0.5}); }), HasSubstr("min_lr is -0.5"));
  EXPECT_THAT(refused([] { TensorBoard({.log_dir = ""}); }), HasSubstr("log_dir"));
  EXPECT_THAT(refused([] { TensorBoard({.histogram_freq = -1}); }),
              HasSubstr("histogram_freq is -1"));
  EXPECT_THAT(refused([] { TensorBoard({.update_freq = 0}); }), HasSubstr("update_freq is 0"));
}

// Before the first step, not when the rate is to fall for the first time.
TEST_F(CallbacksTest, AScheduleOfTheOptimizersOwnIsRefusedAtOnce) {
  model.compile({.optimizer = optimizers::SGD(
                     {.learning_rate = optimizers::schedules::ExponentialDecay(
                          {.initial_learning_rate = 0.5, .decay_steps = 10, .decay_rate = 0.9})}),
                 .loss = class_loss()});
  for (const CallbackArgument& callback :
       {CallbackArgument(ReduceLROnPlateau({.monitor = "loss"})),
        CallbackArgument(LearningRateScheduler([](int64_t, double rate) { return rate; }))}) {
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { fit({callback}, 1); }),
                HasSubstr("schedule"));
  }
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 0);
}

TEST_F(CallbacksTest, AMonitorThatWillNotBeThereIsNamedBeforeAnEpochIsLost) {
  const auto said = [&](std::vector<CallbackArgument> callbacks, const FitOptions& more = {}) {
    FitOptions options = more;
    options.verbose = 0;
    options.epochs = 0;
    options.callbacks = std::move(callbacks);
    ::testing::internal::CaptureStderr();
    model.fit(image_batches(12, 6), options);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said({EarlyStopping()}),
              ::testing::AllOf(HasSubstr("'EarlyStopping'"), HasSubstr("'val_loss'"),
                               HasSubstr("no validation data")));
  EXPECT_THAT(said({ReduceLROnPlateau({.monitor = "val_accuracy"})}), HasSubstr("'val_accuracy'"));
  EXPECT_EQ(said({EarlyStopping()}, {.validation_data = image_batches(6, 6)}), "");
  EXPECT_EQ(said({Says({1}), EarlyStopping()}), "") << "the callback ahead may add it";
  // A name of training is known after the first step.
  ::testing::internal::CaptureStderr();
  std::string after_first_step;
  LambdaCallback look({.on_train_batch_end = [&](int64_t batch, const Logs&) {
    if (batch > 0) return;
    after_first_step = ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
  }});
  fit({EarlyStopping({.monitor = "acuracy"}), look}, 1);
  ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(after_first_step, ::testing::AllOf(HasSubstr("'acuracy'"), HasSubstr("loss")));
  ::testing::internal::CaptureStderr();
  fit({EarlyStopping({.monitor = "loss"}),
       LearningRateScheduler([](int64_t, double r) { return r; }),
       ReduceLROnPlateau({.monitor = "lr"})},
      1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(CallbacksTest, TerminateOnNaNStops) {
  const LabelledImages data = make_images(12, float32);
  const Tensor wrong = data.images.clone();
  wrong[7].fill_(std::numeric_limits<double>::quiet_NaN());
  model.fit(wrong, data.labels,
            {.batch_size = 4,
             .epochs = 3,
             .verbose = 0,
             .callbacks = {TerminateOnNaN()},
             .shuffle = false});
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 2);
}

TEST_F(CallbacksTest, TensorBoardGetsScalarsAndHistograms) {
  model.fit(image_batches(12, 6), {.epochs = 2,
                                   .verbose = 0,
                                   .callbacks = {TensorBoard({.log_dir = directory,
                                                              .histogram_freq = 1,
                                                              .write_steps_per_second = true,
                                                              .update_freq = "batch"})},
                                   .validation_data = image_batches(6, 6)});
  const auto tags = [&](const std::string& run) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/" + run)) {
      for (const auto& event : internal::read_events(internal::posix_file_system(), entry.path())) {
        if (!event.graph.empty()) found.push_back("graph");
        if (!event.tag.empty()) found.push_back(internal::str(event.tag, "@", event.step));
      }
    }
    return found;
  };
  EXPECT_THAT(tags("train"),
              ::testing::IsSupersetOf(
                  {"batch_loss@1", "batch_loss@4", "epoch_loss@0", "epoch_loss@1",
                   "epoch_learning_rate@1", "epoch_steps_per_second@1", "batch_steps_per_second@2",
                   "dense/kernel_0/histogram@1", "model@0", "keras@0", "graph"}));
  EXPECT_THAT(tags("validation"), ElementsAre("evaluation_loss_vs_iterations@2", "epoch_loss@0",
                                              "evaluation_loss_vs_iterations@4", "epoch_loss@1"));
}

// What `config` says, or throws, of itself.
class Told : public layers::Layer {
 public:
  explicit Told(std::function<std::optional<Config>()> config)
      : Layer({.name = "told"}), config_(std::move(config)) {}
  std::optional<Config> get_config() const override { return config_(); }

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return x; }

 private:
  std::function<std::optional<Config>()> config_;
};

TEST_F(CallbacksTest, TensorBoardDrawsLayersOfTheProgramOrSaysWhyNot) {
  int runs = 0;
  const auto graphs = [&](std::function<std::optional<Config>()> config) {
    const std::string logs = internal::str(directory, "/", ++runs);
    const Sequential own(
        {layers::Flatten(), std::make_shared<Told>(std::move(config)), layers::Dense(3)});
    own.compile({.optimizer = "sgd", .loss = class_loss()});
    own.fit(image_batches(12, 6), {.verbose = 0, .callbacks = {TensorBoard({.log_dir = logs})}});
    int64_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(logs + "/train")) {
      for (const auto& event : internal::read_events(internal::posix_file_system(), entry.path())) {
        if (!event.graph.empty()) ++found;
      }
    }
    return found;
  };
  EXPECT_EQ(graphs([] { return Config(); }), 1);
  EXPECT_EQ(graphs([] { return Config().set("layers", 3); }), 1);
  const auto warning_of = [&](std::function<std::optional<Config>()> config) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(graphs(std::move(config)), 0);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warning_of([] { return std::nullopt; }),
              ::testing::AllOf(HasSubstr("no graph"), HasSubstr("'told' (Told)")));
  EXPECT_THAT(warning_of([]() -> std::optional<Config> { throw std::runtime_error("too hot"); }),
              ::testing::AllOf(HasSubstr("'told' (Told)"), HasSubstr("too hot")));
  EXPECT_THAT(warning_of([] { return Config().set("name", "other"); }), HasSubstr("\"other\""));
}

TEST_F(CallbacksTest, TensorBoardGetsWhatEvaluateSays) {
  model.fit(image_batches(12, 6), {.verbose = 0});
  model.evaluate(image_batches(6, 6),
                 {.verbose = 0, .callbacks = {TensorBoard({.log_dir = directory})}});
  std::vector<std::string> tags;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/validation")) {
    for (const auto& event : internal::read_events(internal::posix_file_system(), entry.path())) {
      if (!event.tag.empty()) tags.push_back(internal::str(event.tag, "@", event.step));
    }
  }
  EXPECT_THAT(tags, ElementsAre("evaluation_loss_vs_iterations@2"));
}

TEST_F(CallbacksTest, TensorBoardTracesTheStepsThatItIsTold) {
  model.fit(image_batches(12, 4),
            {.epochs = 2,
             .verbose = 0,
             .callbacks = {TensorBoard({.log_dir = directory, .profile_batch = {2, 4}})}});
  const auto file = internal::posix_file_system().open(
      directory + "/train/plugins/profile/steps-2-4/" + internal::host_name() + ".trace.json");
  std::string trace(file->size(), ' ');
  file->read(0, trace.data(), trace.size());
  EXPECT_THAT(trace, ::testing::AllOf(HasSubstr("traceEvents"), HasSubstr("compute")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { callbacks::ProfileBatch(3, 2); }),
              HasSubstr("3 to 2"));
}

TEST(CallbackTest, OutsideOfFitThereIsNoModel) {
  const TerminateOnNaN callback;
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { callback.model(); }),
              HasSubstr("'TerminateOnNaN'"));
}

// In each of its hooks it has what belongs to the call that called it.
TEST(CallbackTest, UsedByACallWithinAHookItGoesOnWithItsOwnModel) {
  const Sequential outer({layers::Dense(1)}, {.name = "outer"});
  const Sequential inner({layers::Dense(1)}, {.name = "inner"});
  const Tensor x = at::ones({4, 2}), y = at::ones({4, 1});
  class Watch : public Callback {
   public:
    void on_epoch_begin(int64_t) override { say(); }
    void on_epoch_end(int64_t, Logs&) override { say(); }
    std::vector<std::string> said;

   private:
    void say() { said.push_back(internal::str(model().name(), " of ", params().epochs)); }
  } watch;
  LambdaCallback within({.on_epoch_begin = [&](int64_t) {
    inner.fit(x, y, {.verbose = 0, .callbacks = {watch}});
    inner.evaluate(x, y, {.verbose = 0, .callbacks = {watch}});
  }});
  for (const Sequential& model : {outer, inner}) model.compile({.optimizer = "sgd", .loss = "mse"});
  outer.fit(x, y, {.epochs = 2, .verbose = 0, .callbacks = {watch, within}});
  const std::vector<std::string> epoch = {"outer of 2", "inner of 1", "inner of 1", "outer of 2"};
  std::vector<std::string> expected = epoch;
  expected.insert(expected.end(), epoch.begin(), epoch.end());
  EXPECT_EQ(watch.said, expected);
}

// The numbers of the epoch, and of the batch, are those of a training without these calls.
TEST(CallbackTest, CallsOfTheSameModelLeaveTheNumbersOfTheRunningOneAlone) {
  for (const int replicas : {1, 3}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones"})});
    model.compile(
        {.optimizer = optimizers::SGD({.learning_rate = 0.}), .loss = "mse", .metrics = {"mae"}});
    const Tensor x = at::arange(10, at::kFloat).unsqueeze(1), y = x * 3, other = x * 7 + 1;
    const auto numbers_with = [&](std::function<void()> call) {
      std::vector<double> numbers;
      LambdaCallback within({.on_train_batch_end = [&](int64_t, const Logs& logs) {
        call();
        numbers.push_back(logs["loss"]);
      }});
      const History history = model.fit(
          x, y,
          {.batch_size = 3, .epochs = 2, .verbose = 0, .callbacks = {within}, .shuffle = false});
      for (const auto& [name, values] : history.history) {
        numbers.insert(numbers.end(), values.begin(), values.end());
      }
      return numbers;
    };
    const std::vector<double> alone = numbers_with([] {});
    ASSERT_EQ(alone.size(), 12U);
    EXPECT_EQ(numbers_with([&] { model.evaluate(x, other, {.verbose = 0}); }), alone);
    EXPECT_EQ(numbers_with([&] { model.fit(x, other, {.verbose = 0}); }), alone);
    EXPECT_EQ(numbers_with([&] { model.test_on_batch(x, other); }), alone);
    EXPECT_EQ(numbers_with([&] {
                EXPECT_THROW(model.evaluate(x, at::ones({10, 2}), {.verbose = 0}), Error);
              }),
              alone);
  }
}

TEST(CallbackTest, SeenInALoopOfOnesOwn) {
  int calls = 0;
  CallbackList list(
      {LambdaCallback({.on_train_begin = [&] { ++calls; }}),
       std::make_shared<LambdaCallback>(LambdaFunctions{
           .on_epoch_begin = [&](int64_t epoch) { calls += static_cast<int>(epoch); }})});
  list.on_train_begin();
  list.on_epoch_begin(10);
  EXPECT_EQ(calls, 11);
}

}  // namespace
}  // namespace cohort::keras::callbacks
