// What goes wrong in fit, and what is said of it.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/testing_file_size_limit.h"
#include "cohort/keras/saving/models.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct FitErrors : ::testing::Test {
  FitErrors() {
    directory = ::testing::TempDir() + "fit_errors_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
    model.compile(class_options());
  }
  ~FitErrors() override { std::filesystem::remove_all(directory); }

  void fit(const FitOptions& options = {.verbose = 0}) {
    model.fit(data.images, data.labels, options);
  }

  const LabelledImages data = make_images(12, float32);
  const Sequential model = small_classifier();
  std::string directory;
};

TEST_F(FitErrors, ShapesThatDoNotFitALayerNameIt) {
  fit();
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.fit(data.images.slice(1, 0, 6), data.labels, {.verbose = 0}); }),
              AllOf(HasSubstr("'dense'"), HasSubstr("72"), HasSubstr("[12,48]")));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.fit(data.images.squeeze(-1), data.labels, {.verbose = 0}); }),
              AllOf(HasSubstr("'conv'"), HasSubstr("[12,8,8]")));
}

TEST_F(FitErrors, ADatasetOfSingleExamplesAsksForBatches) {
  const auto examples = data::Dataset::from_tensor_slices(tuple(data.images, data.labels));
  const auto scaled =
      examples.map([](const Tensor& x, const Tensor& y) { return tuple(x * 2, y); });
  const DatasetCreator creator([&](const distribute::InputContext&) { return examples; });
  const auto batches = HasSubstr("call `.batch(n)` on the dataset first");
  const auto refusal = [](const auto& call) { return thrown<InvalidArgumentError>(call); };
  for (const Data& unbatched :
       {Data(examples), Data(scaled.shuffle(4, {.seed = 1})), Data(creator)}) {
    EXPECT_THAT(refusal([&] { model.fit(unbatched, {.verbose = 0}); }), batches);
    EXPECT_THAT(refusal([&] { model.evaluate(unbatched, {.verbose = 0}); }), batches);
  }
  EXPECT_THAT(refusal([&] { model.predict(data::Dataset::from_tensor_slices(data.images)); }),
              batches);
  // Where the graph does not tell, the layer does.
  const auto generated =
      examples.map([](const Tensor& x, const Tensor& y) { return tuple(x, y, at::ones({})); });
  EXPECT_THAT(refusal([&] { model.fit(generated, {.verbose = 0}); }),
              AllOf(HasSubstr("'conv' expects an input of rank 4"), HasSubstr(".batch(n)")));
}

// Of layers that run as one plan, too; the 8x8 pixels are a single one before the second pooling.
TEST_F(FitErrors, ImagesTooSmallForAWindowNameTheLayerAndBothSizes) {
  const Sequential deep({layers::Conv2D(4, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                         layers::Conv2D(4, 3, {.activation = "relu"}),
                         layers::MaxPooling2D(2, {.name = "shrinks"}), layers::Flatten(),
                         layers::Dense(3)});
  deep.compile(class_options());
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { deep.fit(data.images, data.labels, {.batch_size = 4, .verbose = 0}); }),
              AllOf(HasSubstr("'shrinks'"), HasSubstr("at least [2,2]"), HasSubstr("[4,1,1,4]")));
}

TEST_F(FitErrors, LabelsOutOfRangeAreNamedWithTheirPlace) {
  Tensor labels = data.labels.clone();
  labels[7] = 3;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.fit(data.images, labels, {.batch_size = 12, .verbose = 0, .shuffle = false});
              }),
              AllOf(HasSubstr("label 3"), HasSubstr("[7]"), HasSubstr("[0, 3)")));
}

TEST_F(FitErrors, UnknownNamesComeWithTheNearest) {
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.loss = "mean_square_error"}); }),
              HasSubstr("the nearest is 'mean_squared_error'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.optimizer = "adm"}); }),
              HasSubstr("the nearest is 'adam'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.metrics = {"acuracy"}}); }),
              HasSubstr("the nearest is 'accuracy'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { layers::Dense(1, {.activation = "rleu"}); }),
              AllOf(HasSubstr("'rleu'"), HasSubstr("relu")));
}

TEST_F(FitErrors, AMetricOfTheWrongRankNamesItAndTheShapes) {
  model.compile({.loss = class_loss(), .metrics = {"categorical_accuracy"}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { fit(); }),
              AllOf(HasSubstr("categorical_accuracy"), HasSubstr("[12]"), HasSubstr("[12,3]")));
  model.compile({.loss = class_loss(), .metrics = {"mse"}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { fit(); }),
              AllOf(HasSubstr("mean_squared_error"), HasSubstr("[12]"), HasSubstr("[12,3]")));
}

TEST_F(FitErrors, ANaNEndsTrainingWhereACallbackWatches) {
  Tensor images = data.images.clone();
  images[5] = std::numeric_limits<float>::quiet_NaN();
  ::testing::internal::CaptureStderr();
  const History history = model.fit(images, data.labels,
                                    {.batch_size = 4,
                                     .epochs = 3,
                                     .verbose = 0,
                                     .callbacks = {callbacks::TerminateOnNaN()},
                                     .shuffle = false});
  EXPECT_THAT(history.epoch, ElementsAre(0));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("TerminateOnNaN"), HasSubstr("after batch 2")));
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 2);
}

// Row 41 of the fault matrix.
TEST_F(FitErrors, ANaNOfOneReplicaIsSkippedByAll) {
  Tensor images = data.images.clone();
  images[5] = std::numeric_limits<float>::quiet_NaN();
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential skips = small_classifier();
  skips.compile({.optimizer = optimizers::Adam(
                     {.learning_rate = 0.01, .not_finite = optimizers::NotFinite::SKIP}),
                 .loss = class_loss()});
  skips.fit(images, data.labels, {.batch_size = 4, .epochs = 2, .verbose = 0, .shuffle = false});
  EXPECT_EQ(skips.optimizer().skipped_updates(), 2);
  EXPECT_EQ(skips.optimizer().iterations().value().item<int64_t>(), 4);
  for (const Variable& variable : skips.trainable_variables()) {
    const auto components = variable.components();
    EXPECT_TRUE(components.value(0).isfinite().all().item<bool>());
    EXPECT_TRUE(components.value(1).equal(components.value(0)));
  }
  skips.compile({.optimizer = optimizers::Adam({.not_finite = optimizers::NotFinite::RAISE}),
                 .loss = class_loss()});
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { skips.fit(images, data.labels, {.verbose = 0, .shuffle = false}); }),
              HasSubstr("not finite"));
}

// Writing fails under this limit as on a full disk. A checkpoint's data are larger, and what is
// logged is not.
constexpr rlim_t kFullDisk = 2000;

TEST_F(FitErrors, AFullDiskUnderModelCheckpointIsSaidAndTrainingGoesOn) {
  std::optional<internal::FileSizeLimit> full;
  callbacks::LambdaCallback fills({.on_epoch_begin =
                                       [&](int64_t epoch) {
                                         full.reset();
                                         if (epoch == 1) full.emplace(kFullDisk);
                                       },
                                   .on_train_end = [&](const Logs&) { full.reset(); }});
  ::testing::internal::CaptureStderr();
  const History history = model.fit(
      data.images, data.labels,
      {.epochs = 3,
       .verbose = 0,
       .callbacks = {
           callbacks::ModelCheckpoint({.filepath = directory + "/{epoch}", .asynchronous = false}),
           fills}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(history.epoch.size(), 3u);
  EXPECT_THAT(said, AllOf(HasSubstr("ModelCheckpoint"), HasSubstr(directory + "/2"),
                          HasSubstr("training goes on")));
  EXPECT_TRUE(std::filesystem::exists(directory + "/1/model.json"));
  EXPECT_FALSE(std::filesystem::exists(directory + "/2/model.json"));
  EXPECT_EQ(all_weights(models::load_model(directory + "/3")), all_weights(model));
}

TEST_F(FitErrors, AFullDiskUnderLogsIsSaidAndTrainingGoesOn) {
  std::optional<internal::FileSizeLimit> full;
  callbacks::LambdaCallback fills({.on_epoch_begin =
                                       [&](int64_t epoch) {
                                         if (epoch == 1) full.emplace(kFullDisk);
                                       },
                                   .on_train_end = [&](const Logs&) { full.reset(); }});
  ::testing::internal::CaptureStderr();
  const History history = model.fit(
      data.images, data.labels,
      {.epochs = 3,
       .verbose = 0,
       .callbacks = {callbacks::CSVLogger("/dev/full"),
                     callbacks::TensorBoard({.log_dir = directory + "/board", .histogram_freq = 1}),
                     fills}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(history.epoch.size(), 3u);
  EXPECT_THAT(said, AllOf(HasSubstr("CSVLogger: '/dev/full' gets no line of epoch 0"),
                          HasSubstr("TensorBoard: nothing more is recorded, training goes on"),
                          Not(HasSubstr("summaries"))));  // the writer's own words, again and again
}

TEST_F(FitErrors, AModelThatCouldNotBeSavedIsNotTheBest) {
  std::optional<internal::FileSizeLimit> full;
  callbacks::LambdaCallback fills(
      {.on_epoch_begin =
           [&](int64_t epoch) {
             full.reset();
             if (epoch == 1) full.emplace(kFullDisk);
           },
       .on_epoch_end =
           [&](int64_t epoch, Logs& logs) {
             logs.set("val_loss", std::vector<double>{3, 1, 2, 2.5}.at(static_cast<size_t>(epoch)));
           }});
  callbacks::ModelCheckpoint best(
      {.filepath = directory + "/{epoch}", .save_best_only = true, .asynchronous = false});
  model.fit(data.images, data.labels, {.epochs = 4, .verbose = 0, .callbacks = {fills, best}});
  EXPECT_EQ(best.best(), 2);
  EXPECT_TRUE(std::filesystem::exists(directory + "/3/model.json"));
  EXPECT_FALSE(std::filesystem::exists(directory + "/4/model.json"));
}

TEST_F(FitErrors, ALineThatCSVLoggerCannotWriteWholeIsNotInTheFile) {
  const std::string path = directory + "/log.csv";
  std::ofstream(path) << std::string(kFullDisk, 'x') << '\n';
  const auto text = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string before;
  std::optional<internal::FileSizeLimit> full;
  callbacks::LambdaCallback fills({.on_epoch_begin =
                                       [&](int64_t epoch) {
                                         if (epoch != 1) return;
                                         before = text();
                                         full.emplace(before.size() + 3);
                                       },
                                   .on_train_end = [&](const Logs&) { full.reset(); }});
  ::testing::internal::CaptureStderr();
  const History history =
      model.fit(data.images, data.labels,
                {.epochs = 3,
                 .verbose = 0,
                 .callbacks = {callbacks::CSVLogger(path, {.append = true}), fills}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(history.epoch.size(), 3u);
  EXPECT_THAT(said, HasSubstr("CSVLogger: '" + path + "' gets no line of epoch 1"));
  EXPECT_THAT(before, HasSubstr("x\n0,"));
  EXPECT_EQ(text(), before);
}

FitOptions with_all_files(const std::string& directory) {
  return {.epochs = 2,
          .verbose = 0,
          .callbacks = {callbacks::ModelCheckpoint({.filepath = directory + "/model"}),
                        callbacks::BackupAndRestore(directory + "/backup"),
                        callbacks::CSVLogger(directory + "/log.csv"),
                        callbacks::TensorBoard({.log_dir = directory + "/board"})}};
}

TEST_F(FitErrors, ASecondRunInTheSameDirectoryReplacesTheFirst) {
  fit(with_all_files(directory));
  fit(with_all_files(directory));
  EXPECT_EQ(all_weights(models::load_model(directory + "/model")), all_weights(model));
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 4);  // it did not resume
}

// As long as a callback lives that was used by it.
TEST_F(FitErrors, AFitThatFailsWhileItProfilesLeavesTheProfilerToOthers) {
  callbacks::TensorBoard board({.log_dir = directory, .profile_batch = {1, 5}});
  callbacks::LambdaCallback fails({.on_train_batch_end = [](int64_t, const Logs&) {
    throw UnavailableError("the phone is busy");
  }});
  EXPECT_THROW(fit({.batch_size = 4, .verbose = 0, .callbacks = {board, fails}}), UnavailableError);
  fit({.batch_size = 2,
       .verbose = 0,
       .callbacks = {
           callbacks::TensorBoard({.log_dir = directory + "/again", .profile_batch = {2, 3}})}});
  EXPECT_TRUE(std::filesystem::exists(directory + "/again/train/plugins/profile/steps-2-3"));
}

TEST_F(FitErrors, ACallbackDoesNotCompileTheModelThatIsTrained) {
  const History before = model.fit(data.images, data.labels, {.verbose = 0, .shuffle = false});
  const auto compile_in = [&](callbacks::LambdaFunctions hooks) {
    return thrown<FailedPreconditionError>(
        [&] { fit({.verbose = 0, .callbacks = {callbacks::LambdaCallback(std::move(hooks))}}); });
  };
  const auto says_when =
      AllOf(HasSubstr("callback 'LambdaCallback', on_train_batch_end: compile: model '"),
            HasSubstr("when that has ended, not in a callback"));
  EXPECT_THAT(compile_in({.on_train_batch_end =
                              [&](int64_t, const Logs&) { model.compile(class_options()); }}),
              says_when);
  model.compile(class_options());  // now it may
  EXPECT_GT(model.fit(data.images, data.labels, {.verbose = 0})["loss"][0], 0);
}

TEST_F(FitErrors, OneThreadAtATimeTrainsAModel) {
  std::vector<std::string> refused;
  fit({.verbose = 0,
       .callbacks = {callbacks::LambdaCallback({.on_epoch_end = [&](int64_t, Logs&) {
         std::thread other([&] {
           const std::vector<std::function<void()>> calls = {
               [&] { fit(); }, [&] { model.evaluate(data.images, data.labels, {.verbose = 0}); },
               [&] { model.train_on_batch(data.images, data.labels); }};
           for (const auto& call : calls) refused.push_back(thrown<FailedPreconditionError>(call));
           model.predict(data.images, {.verbose = 0});  // changes nothing
         });
         other.join();
         model.evaluate(data.images, data.labels, {.verbose = 0});  // nor does it wait for itself
       }})}});
  ASSERT_EQ(refused.size(), 3u);
  for (const std::string& text : refused) {
    EXPECT_THAT(text,
                AllOf(HasSubstr("model '" + model.name() + "'"), HasSubstr("another thread")));
  }
  fit();
}

TEST_F(FitErrors, APathThatCannotBeUsedIsSaidBeforeTheFirstStep) {
  std::ofstream(directory + "/file") << "no directory";
  std::filesystem::create_directories(directory + "/board");
  std::ofstream(directory + "/board/validation") << "no directory";
  const std::string file = directory + "/file";
  const std::vector<std::pair<std::string, callbacks::CallbackArgument>> given = {
      {"BackupAndRestore", callbacks::BackupAndRestore(file)},
      {"BackupAndRestore", callbacks::BackupAndRestore(file + "/below")},
      {"ModelCheckpoint", callbacks::ModelCheckpoint(file)},
      {"ModelCheckpoint", callbacks::ModelCheckpoint(file + "/{epoch:02d}/model")},
      {"ModelCheckpoint",
       callbacks::ModelCheckpoint({.filepath = file + "/w", .save_weights_only = true})},
      {"CSVLogger", callbacks::CSVLogger(file + "/log.csv")},
      {"CSVLogger", callbacks::CSVLogger(directory)},
      {"TensorBoard", callbacks::TensorBoard({.log_dir = file})},
      {"TensorBoard", callbacks::TensorBoard({.log_dir = directory + "/board"})}};
  int64_t steps = 0;
  const callbacks::LambdaCallback counts(
      {.on_train_batch_end = [&](int64_t, const Logs&) { ++steps; }});
  for (const auto& [name, argument] : given) {
    const callbacks::CallbackArgument& callback = argument;  // what a lambda may capture
    EXPECT_THAT(
        thrown<Error>([&] {
          fit({.verbose = 0, .callbacks = {callbacks::LambdaCallback(counts), callback}});
        }),
        AllOf(HasSubstr("callback '" + name + "', on_train_begin: "), HasSubstr(directory)));
  }
  EXPECT_EQ(steps, 0);
}

// What another process would hold: the lock of whoever saves there.
TEST_F(FitErrors, ASecondRunAtTheSameTimeIsRefusedBeforeItWritesAnything) {
  const auto held =
      internal::posix_file_system().lock(directory + "/.cohort-writer.lock", "the first run");
  EXPECT_THAT(
      thrown<FailedPreconditionError>([&] {
        fit({.verbose = 0,
             .callbacks = {callbacks::ModelCheckpoint({.filepath = directory + "/model"})}});
      }),
      AllOf(HasSubstr(directory), HasSubstr("the first run")));
  EXPECT_FALSE(std::filesystem::exists(directory + "/model/model.json"));
}

TEST_F(FitErrors, ASecondRunAtTheSameTimeIsRefusedBeforeItsFirstStep) {
  const auto held =
      internal::posix_file_system().lock(directory + "/.cohort-writer.lock", "the first run");
  int64_t steps = 0;
  const callbacks::LambdaCallback counts(
      {.on_train_batch_end = [&](int64_t, const Logs&) { ++steps; }});
  const std::vector<callbacks::CallbackArgument> savers = {
      callbacks::BackupAndRestore(directory),
      callbacks::ModelCheckpoint({.filepath = directory + "/w", .save_weights_only = true}),
      callbacks::ModelCheckpoint({.filepath = directory + "/{epoch}"})};
  for (const callbacks::CallbackArgument& saver : savers) {
    EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                  fit({.verbose = 0, .callbacks = {callbacks::LambdaCallback(counts), saver}});
                }),
                AllOf(HasSubstr(directory), HasSubstr("the first run")));
  }
  EXPECT_EQ(steps, 0);
}

TEST_F(FitErrors, StringsAmongTheLabelsNameWhatTakesThem) {
  const StringTensor words(std::vector<std::string>(12, "one"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(data.images, words, {.verbose = 0}); }),
              AllOf(HasSubstr("labels"), HasSubstr("string ["), HasSubstr("loss '")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.fit(data.images, words, {.verbose = 0, .class_weight = {{0, 1.0}}});
              }),
              AllOf(HasSubstr("class_weight"), HasSubstr("string [")));
}

TEST_F(FitErrors, ClassWeightsTakeNoComplexLabels) {
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.fit(data.images, at::zeros({12}, at::kComplexFloat),
                          {.verbose = 0, .class_weight = {{0, 1.0}}});
              }),
              AllOf(HasSubstr("class_weight"), HasSubstr("complex numbers")));
}

TEST_F(FitErrors, AStringAmongWhatTrainStepReturnsIsNamed) {
  struct Speaking : Model {
    Tensor call(const Tensor& x, const CallOptions&) override { return x; }
    Structure train_step(const Structure&) override {
      return dict({{"said", StringTensor({"a"})}});
    }
  };
  const ModelHandle speaking = std::make_shared<Speaking>();
  speaking.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                speaking.fit(at::ones({2, 1}), at::ones({2, 1}), {.verbose = 0});
              }),
              AllOf(HasSubstr("strings of shape [1]"), HasSubstr("['said']")));
}

}  // namespace
}  // namespace cohort::keras
