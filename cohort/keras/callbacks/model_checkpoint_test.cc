#include "cohort/keras/callbacks/model_checkpoint.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/keras/callbacks/file_name.h"
#include "cohort/keras/saving/models.h"
#include "cohort/keras/training/testing_fit.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_reader.h"

namespace cohort::keras {
namespace {

using callbacks::ModelCheckpoint;
using internal::formatted_file_name;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileName, HoldsNumbersOfTheLogs) {
  const Logs logs = {{"loss", 0.51234}, {"val_accuracy", 0.875}};
  EXPECT_EQ(formatted_file_name("a/w.{epoch:02d}-{loss:.2f}", 4, std::nullopt, logs),
            "a/w.05-0.51");
  EXPECT_EQ(formatted_file_name("{epoch}_{batch:4d}", 0, 6, logs), "1_   7");
  EXPECT_EQ(formatted_file_name("{val_accuracy}", 0, std::nullopt, logs), "0.875");
  EXPECT_EQ(formatted_file_name("{loss:.1e}", 0, std::nullopt, logs), "5.1e-01");
}

TEST(FileName, LiesInADirectoryThatItsNumbersDoNotName) {
  EXPECT_EQ(internal::common_directory("run/{epoch}/model"), "run");
  EXPECT_EQ(internal::common_directory("run/a{epoch}"), "run");
  EXPECT_EQ(internal::common_directory("run/best"), "run");
  EXPECT_EQ(internal::common_directory("/{epoch}"), "/");
  EXPECT_EQ(internal::common_directory("{epoch}"), ".");
}

TEST(FileName, RefusesWhatIsNotThere) {
  const auto refused = [](const char* pattern) {
    return thrown<InvalidArgumentError>([&] {
      formatted_file_name(pattern, 0, std::nullopt, {{"loss", 1}});
    });
  };
  EXPECT_THAT(refused("{val_loss}"), HasSubstr("there are: epoch, loss"));
  EXPECT_THAT(refused("{batch}"), HasSubstr("no 'batch'"));
  EXPECT_THAT(refused("{epoch"), HasSubstr("no '}'"));
  EXPECT_THAT(refused("{loss:%n}"), HasSubstr("no format"));
}

struct ModelCheckpointTest : ::testing::Test {
  ModelCheckpointTest() {
    directory = ::testing::TempDir() + "model_checkpoint_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
    model.compile(class_options());
  }
  ~ModelCheckpointTest() override { std::filesystem::remove_all(directory); }

  void fit(callbacks::CallbackArgument callback, int64_t epochs = 3) {
    model.fit(image_batches(12, 6), {.epochs = epochs, .verbose = 0, .callbacks = {callback}});
  }
  // The whole models that there are, and with `extension` other files.
  std::vector<std::string> saved(const std::string& extension = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const bool is_model = std::filesystem::exists(entry.path() / "model.json");
      if (extension.empty() ? is_model : entry.path().extension() == extension) {
        names.push_back(entry.path().stem());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string directory;
  const Sequential model = small_classifier();
};

TEST_F(ModelCheckpointTest, SavesEachEpoch) {
  fit(ModelCheckpoint(directory + "/e{epoch}"));
  EXPECT_THAT(saved(), ElementsAre("e1", "e2", "e3"));
  const ModelHandle again = models::load_model(directory + "/e3");
  EXPECT_EQ(all_weights(again), all_weights(model));
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 6);
  // Compiled as it was: it goes on as the model itself.
  const ModelHandle earlier = models::load_model(directory + "/e2");
  earlier.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
  EXPECT_EQ(all_weights(earlier), all_weights(model));
}

// Also in a path without numbers, and of two fits.
TEST_F(ModelCheckpointTest, EachSaveReplacesTheOneBefore) {
  fit(ModelCheckpoint(directory + "/model"));
  fit(ModelCheckpoint({.filepath = directory + "/model", .asynchronous = false}));
  EXPECT_EQ(all_weights(models::load_model(directory + "/model")), all_weights(model));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/model")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(".")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  EXPECT_THAT(files,
              ElementsAre("model.json", "variables-6.data-00000-of-00001", "variables-6.index"));
}

// One directory for each epoch must not cost an open file for each.
TEST_F(ModelCheckpointTest, KeepsNoFilesOpen) {
  const auto open_files = [] {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;  // the iterator's own is gone
      const std::string target = std::filesystem::read_symlink(entry.path(), error);
      if (!error && target.find("model_checkpoint_test") != target.npos) ++count;
    }
    return count;
  };
  std::vector<int64_t> counts;
  callbacks::LambdaCallback looks(
      {.on_epoch_end = [&](int64_t, Logs&) { counts.push_back(open_files()); }});
  model.fit(
      image_batches(12, 6),
      {.epochs = 6,
       .verbose = 0,
       .callbacks = {ModelCheckpoint({.filepath = directory + "/{epoch}", .asynchronous = false}),
                     looks}});
  EXPECT_EQ(counts.at(5), counts.at(1));
  EXPECT_EQ(open_files(), 0);
  // Those of a callback that stays, whether fit comes to its end or not.
  ModelCheckpoint stays(directory + "/{epoch}");
  fit(stays, 1);
  EXPECT_EQ(open_files(), 0);
  callbacks::LambdaCallback fails({.on_epoch_begin = [](int64_t epoch) {
    if (epoch == 1) throw DataLossError("as the test wants");
  }});
  EXPECT_THROW(
      model.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0, .callbacks = {stays, fails}}),
      DataLossError);
  EXPECT_EQ(open_files(), 0);
}

TEST_F(ModelCheckpointTest, AModelThatCannotBeSavedWholeIsRefusedBeforeItTrains) {
  const Sequential linear(
      {layers::Dense(2, {.activation = [](const Tensor& x) { return x * 2; }, .name = "own"})});
  linear.compile({.optimizer = "sgd", .loss = "mse"});
  const auto fit_with = [&](ModelCheckpoint checkpoint) {
    linear.fit(at::ones({4, 4}), at::ones({4, 2}),
               {.epochs = 1, .verbose = 0, .callbacks = {std::move(checkpoint)}});
  };
  EXPECT_THAT(thrown<UnimplementedError>([&] { fit_with(ModelCheckpoint(directory + "/x")); }),
              ::testing::AllOf(HasSubstr("layer 'own'"), HasSubstr(".save_weights_only = true")));
  fit_with(ModelCheckpoint({.filepath = directory + "/x", .save_weights_only = true}));
  EXPECT_THAT(saved(".index"), ElementsAre("x"));
}

TEST_F(ModelCheckpointTest, SavesAfterSoManySteps) {
  fit(ModelCheckpoint({.filepath = directory + "/e{epoch}b{batch}", .save_freq = 3}));
  EXPECT_THAT(saved(), ElementsAre("e2b1", "e3b2"));
}

TEST_F(ModelCheckpointTest, SavesTheBestOnly) {
  // As the numbers below say, whatever the training does.
  class Says : public callbacks::Callback {
    void on_epoch_end(int64_t epoch, Logs& logs) override {
      logs.set("val_loss", std::vector<double>{3, 4, 2, 5}.at(static_cast<size_t>(epoch)));
    }
  };
  ModelCheckpoint checkpoint(
      {.filepath = directory + "/{epoch}", .save_best_only = true, .save_weights_only = true});
  model.fit(image_batches(12, 6), {.epochs = 4, .verbose = 0, .callbacks = {Says(), checkpoint}});
  EXPECT_THAT(saved(".index"), ElementsAre("1", "3"));
  EXPECT_EQ(checkpoint.best(), 2);

  ModelCheckpoint whole({.filepath = directory + "/best", .save_best_only = true});
  std::vector<double> best;
  callbacks::LambdaCallback looks({.on_epoch_end = [&](int64_t epoch, Logs&) {
    if (epoch == 2) best = all_weights(model);
  }});
  model.fit(image_batches(12, 6), {.epochs = 4, .verbose = 0, .callbacks = {Says(), whole, looks}});
  EXPECT_EQ(all_weights(models::load_model(directory + "/best")), best);
}

TEST_F(ModelCheckpointTest, SavesOnAfterAFitWithinACallback) {
  for (const bool weights_only : {false, true}) {
    ModelCheckpoint checkpoint({.filepath = directory + (weights_only ? "/w{epoch}" : "/m{epoch}"),
                                .save_weights_only = weights_only});
    callbacks::LambdaCallback within({.on_epoch_begin = [&](int64_t epoch) {
      if (epoch == 1) fit(checkpoint, 1);
    }});
    model.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0, .callbacks = {checkpoint, within}});
    const Sequential again = small_classifier(8);
    again.compile(class_options());
    if (weights_only) {
      again.load_weights(directory + "/w2");
      again(make_images(1, float32).images);
      EXPECT_EQ(all_weights(again), all_weights(model));
    } else {
      EXPECT_EQ(all_weights(models::load_model(directory + "/m2")), all_weights(model));
    }
  }
}

TEST_F(ModelCheckpointTest, SavesItsOwnModelAfterAFitOfAnother) {
  const Sequential other = small_classifier(8);
  other.compile(class_options());
  ModelCheckpoint checkpoint({.filepath = directory + "/one"});
  callbacks::LambdaCallback within({.on_epoch_begin = [&](int64_t) {
    other.fit(image_batches(12, 6), {.verbose = 0, .callbacks = {checkpoint}});
  }});
  model.fit(image_batches(12, 6), {.verbose = 0, .callbacks = {checkpoint, within}});
  EXPECT_EQ(all_weights(models::load_model(directory + "/one")), all_weights(model));
}

TEST_F(ModelCheckpointTest, WithoutWhatItMonitorsItWarns) {
  ::testing::internal::CaptureStderr();
  fit(ModelCheckpoint({.filepath = directory + "/x", .save_best_only = true}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("'val_loss'"), HasSubstr("loss, accuracy")));
  EXPECT_TRUE(saved().empty());
}

TEST_F(ModelCheckpointTest, FileNamesAreCheckedAtOnce) {
  const auto refused = [](callbacks::ModelCheckpointOptions options) {
    return thrown<InvalidArgumentError>([&] { ModelCheckpoint(std::move(options)); });
  };
  EXPECT_THAT(refused({.filepath = "a/{epoch"}), HasSubstr("no '}'"));
  EXPECT_THAT(refused({.filepath = "a/epoch}"}), HasSubstr("no '{'"));
  EXPECT_THAT(refused({.filepath = "a/{epoch:x}"}), HasSubstr("'x' is no format"));
  EXPECT_THAT(refused({.filepath = "a/{loss:2q}"}), HasSubstr("'2q' is no format"));
  EXPECT_THAT(refused({.filepath = "a/{}"}), HasSubstr("no name"));
  EXPECT_THAT(refused({.filepath = "a/{batch}"}), HasSubstr(".save_freq"));
  EXPECT_THAT(refused({.filepath = "a/{batch}-{val_loss}", .save_freq = 3}),
              HasSubstr("numbers of validation"));
  EXPECT_THAT(refused({.filepath = "a", .monitor = "", .save_best_only = true}),
              HasSubstr("monitor is empty"));
  ModelCheckpoint({.filepath = "a/{epoch:02d}-{batch}-{loss:.3f}", .save_freq = 3});
}

TEST_F(ModelCheckpointTest, NamesThatTheLogsWillLackAreRefusedBeforeAnEpochIsLost) {
  int64_t steps = 0, epochs = 0;
  callbacks::LambdaCallback count({.on_epoch_end = [&](int64_t, Logs&) { ++epochs; },
                                   .on_train_batch_end = [&](int64_t, const Logs&) { ++steps; }});
  const auto refused = [&](const std::string& name, FitOptions options) {
    steps = epochs = 0;
    options.epochs = 2;
    options.verbose = 0;
    options.callbacks = {ModelCheckpoint(directory + "/" + name), count};
    const std::string text =
        thrown<InvalidArgumentError>([&] { model.fit(image_batches(12, 6), options); });
    EXPECT_EQ(epochs, 0);
    return text;
  };
  EXPECT_THAT(refused("{val_loss}", {}),
              ::testing::AllOf(HasSubstr("'val_loss'"), HasSubstr("no validation data")));
  EXPECT_EQ(steps, 0);
  EXPECT_THAT(refused("{val_loss}", {.validation_data = image_batches(6, 6), .validation_freq = 2}),
              HasSubstr(".validation_freq"));
  EXPECT_EQ(steps, 0);
  EXPECT_THAT(refused("{acuracy}", {}),
              ::testing::AllOf(HasSubstr("'acuracy'"), HasSubstr("loss, accuracy")));
  EXPECT_EQ(steps, 0);
  EXPECT_TRUE(saved().empty());
  // What validation brings, what another callback adds, and what both may.
  callbacks::LambdaCallback adds({.on_epoch_end = [](int64_t, Logs& logs) { logs.set("own", 1); }});
  model.fit(image_batches(12, 6),
            {.verbose = 0,
             .callbacks = {adds, ModelCheckpoint(directory + "/{val_accuracy:.0f}{own:.0f}")},
             .validation_data = image_batches(6, 6)});
  EXPECT_EQ(saved().size(), 1u);
}

TEST_F(ModelCheckpointTest, WeightsAloneAreThoseThatLoadWeightsReads) {
  fit(ModelCheckpoint({.filepath = directory + "/best", .save_weights_only = true}), 1);
  const Sequential other = small_classifier(8);
  other.load_weights(directory + "/best");
  other(make_images(1, float32).images);
  EXPECT_EQ(all_weights(other), all_weights(model));
}

// As Keras 2.15 has it: the optimizer goes with the weights.
TEST_F(ModelCheckpointTest, WeightsAloneHoldTheOptimizer) {
  fit(ModelCheckpoint({.filepath = directory + "/{epoch}", .save_weights_only = true}));
  const Sequential again = small_classifier(8);
  again.compile(class_options());
  again.load_weights(directory + "/2");  // before the model is built
  again.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 6);
  EXPECT_EQ(all_weights(again), all_weights(model));

  again.load_weights(directory + "/1");  // into what is there
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 2);
  again.fit(image_batches(12, 6), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(all_weights(again), all_weights(model));
}

// As TensorFlow's deferred restoration: into a model that is built, and into one that is not.
TEST_F(ModelCheckpointTest, TheOptimizerOfWeightsWaitsForCompile) {
  fit(ModelCheckpoint({.filepath = directory + "/{epoch}", .save_weights_only = true}));
  for (const bool built : {false, true}) {
    const auto strategy = distribute::mirrored(1);
    const auto scope = strategy.scope();
    const Sequential again = small_classifier(8);
    if (built) again(make_images(1, float32).images);
    again.load_weights(directory + "/2");
    again.compile(class_options());
    EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 4);
    again.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
    EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 6);
    EXPECT_EQ(all_weights(again), all_weights(model)) << built;
    again.compile(class_options());
    EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 0);
  }
}

// Before anything has changed, as often as it is tried.
TEST_F(ModelCheckpointTest, AnOptimizerOfAnotherClassThanThatOfTheWeightsIsRefusedByCompile) {
  fit(ModelCheckpoint({.filepath = directory + "/w", .save_weights_only = true}));
  for (const bool built : {false, true}) {
    const Sequential other = small_classifier(8);
    if (built) other(make_images(1, float32).images);
    other.load_weights(directory + "/w");
    for (const optimizers::Optimizer& wrong :
         {optimizers::Optimizer(optimizers::SGD({.learning_rate = 0.25})),
          optimizers::Optimizer(optimizers::Nadam({.learning_rate = 0.25}))}) {
      CompileOptions options = class_options();
      options.optimizer = wrong;
      EXPECT_THAT(
          thrown<InvalidArgumentError>([&] { other.compile(options); }),
          ::testing::AllOf(HasSubstr("compile with the one that was saved"),
                           HasSubstr("train::Checkpoint(model).read(\"" + directory + "/w\")"),
                           HasSubstr("that of the checkpoint _momentums, _velocities")));
      EXPECT_EQ(wrong.learning_rate(), 0.25);
      EXPECT_THROW(other.optimizer(), FailedPreconditionError);
    }
    EXPECT_THROW(
        {
          const Float64 of_the_learning_rate;
          other.compile(class_options());
        },
        InvalidArgumentError);
    other.compile(class_options());
    EXPECT_EQ(other.optimizer().iterations().value().item<int64_t>(), 6);
    other.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
  }
}

// The way out that the error names.
TEST_F(ModelCheckpointTest, WeightsThatAreReadWithoutTheOptimizerGoOnWithAnother) {
  fit(ModelCheckpoint({.filepath = directory + "/w", .save_weights_only = true}));
  const Sequential other = small_classifier(8);
  other.load_weights(directory + "/w");
  CompileOptions options = class_options();
  options.optimizer = optimizers::SGD({.learning_rate = 0.25});
  EXPECT_THROW(other.compile(options), InvalidArgumentError);
  train::Checkpoint(other).read(directory + "/w").expect_partial();
  other.compile(options);
  EXPECT_EQ(other.optimizer().iterations().value().item<int64_t>(), 0);
  EXPECT_EQ(other.optimizer().learning_rate(), 0.25);
  other(make_images(1, float32).images);
  EXPECT_EQ(all_weights(other), all_weights(model));
  other.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
}

// Values that wait for compile are saved with the weights.
TEST_F(ModelCheckpointTest, WeightsThatAreSavedAgainBeforeCompileStillHaveTheOptimizer) {
  fit(ModelCheckpoint({.filepath = directory + "/{epoch}", .save_weights_only = true}));
  for (const bool built : {false, true}) {
    const Sequential between = small_classifier(8);
    if (built) between(make_images(1, float32).images);
    between.load_weights(directory + "/2");
    between.save_weights(directory + "/again");
    const Sequential again = small_classifier(8);
    again.compile(class_options());
    again.load_weights(directory + "/again");
    EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 4);
    again.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
    EXPECT_EQ(all_weights(again), all_weights(model)) << built;
    // They are not used up, and taken by compile all the same.
    between.compile(class_options());
    between.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
    EXPECT_EQ(all_weights(between), all_weights(model)) << built;
    // Weights of elsewhere bring none.
    const Sequential plain = small_classifier(8);
    plain.load_weights(directory + "/2");
    const Sequential other = small_classifier(9);
    other(make_images(1, float32).images);
    other.save_weights(directory + "/plain");
    plain.load_weights(directory + "/plain");
    plain.save_weights(directory + "/without");
    EXPECT_FALSE(train::CheckpointReader(directory + "/without")
                     .has_tensor("optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE"));
  }
}

TEST_F(ModelCheckpointTest, WeightsAloneFitAModelOfAnotherOptimizer) {
  fit(ModelCheckpoint({.filepath = directory + "/w", .save_weights_only = true}));
  const Sequential other = small_classifier(8);
  CompileOptions options = class_options();
  options.optimizer = optimizers::SGD({.learning_rate = 0.25});
  other.compile(options);
  for (const bool has_slots : {false, true}) {
    const int64_t iterations = has_slots ? 2 : 0;
    ::testing::internal::CaptureStderr();
    other.load_weights(directory + "/w");
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("the weights are loaded, but the optimizer in the file is not that"));
    EXPECT_EQ(other.optimizer().learning_rate(), 0.25);
    EXPECT_EQ(other.optimizer().iterations().value().item<int64_t>(), iterations);
    other.evaluate(image_batches(12, 6), {.verbose = 0});
    EXPECT_EQ(all_weights(other), all_weights(model));
    other.fit(image_batches(12, 6), {.epochs = 1, .verbose = 0});
  }
  // Also one that has not made its slots.
  const Sequential unbuilt = small_classifier(8);
  unbuilt.compile(class_options());
  unbuilt(make_images(1, float32).images);
  unbuilt.save_weights(directory + "/unbuilt");
  other.load_weights(directory + "/unbuilt");
  EXPECT_EQ(other.optimizer().learning_rate(), 0.25);
  // A file without an optimizer: iterations stay.
  const Sequential plain = small_classifier(9);
  plain(make_images(1, float32).images);
  plain.save_weights(directory + "/plain");
  model.load_weights(directory + "/plain");
  EXPECT_EQ(all_weights(model), all_weights(plain));
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 6);
}

// As Keras 2.15 has it: the last to be written is the latest of the directory.
TEST_F(ModelCheckpointTest, WeightsAloneBecomeTheLatestCheckpoint) {
  fit(ModelCheckpoint({.filepath = directory + "/{epoch}", .save_weights_only = true}));
  EXPECT_EQ(train::latest_checkpoint(directory), directory + "/3");
  model.save_weights(directory + "/by_hand");
  EXPECT_EQ(train::latest_checkpoint(directory), directory + "/by_hand");
}

}  // namespace
}  // namespace cohort::keras
