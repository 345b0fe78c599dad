#include "cohort/keras/sidecar_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/keras/callbacks/model_checkpoint.h"
#include "cohort/keras/training/testing_fit.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_manager.h"

namespace cohort::keras {
namespace {

using callbacks::Callback;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using utils::SidecarEvaluator;

// Another model than the one that is evaluated, so that its weights must come from files.
class SidecarEvaluatorTest : public data::FilesTest {
 protected:
  SidecarEvaluatorTest() {
    for (const Sequential& model : {trained_, evaluated_}) model.compile(class_options());
    fit_once();
  }
  void fit_once() const { trained_.fit(batches(), {.verbose = 0}); }
  static data::Dataset batches() { return image_batches(13, 6); }
  train::Checkpoint trained_objects() const {
    return train::Checkpoint({{"model", trained_}, {"optimizer", trained_.optimizer()}});
  }
  double trained_loss() const { return trained_.evaluate(batches(), {.verbose = 0})["loss"]; }

  const Sequential trained_ = small_classifier(7);
  const Sequential evaluated_ = small_classifier(8);
};

// A training that goes on meanwhile.
class SavesTheNext : public Callback {
 public:
  SavesTheNext(const train::CheckpointManager& manager, const ModelHandle& evaluated)
      : manager_(manager), evaluated_(evaluated) {}
  void on_test_end(const Logs& logs) override {
    losses.push_back(logs["loss"]);
    iterations.push_back(evaluated_.optimizer().iterations().value().item<int64_t>());
    manager_.save();
  }
  std::vector<double> losses;
  std::vector<int64_t> iterations;

 private:
  const train::CheckpointManager& manager_;
  const ModelHandle evaluated_;
};

TEST_F(SidecarEvaluatorTest, EvaluatesEachCheckpointUntilTheLast) {
  const train::CheckpointManager manager(trained_objects(), directory + "/saved");
  manager.save();
  SavesTheNext next(manager, evaluated_);
  const Logs logs = SidecarEvaluator(evaluated_, batches(),
                                     {.checkpoint_dir = directory + "/saved",
                                      .max_evaluations = 3,
                                      .callbacks = {next},
                                      .verbose = 0})
                        .start();
  EXPECT_EQ(next.losses.size(), 3u);
  EXPECT_THAT(next.iterations, ElementsAre(3, 3, 3));
  EXPECT_NEAR(logs["loss"], trained_loss(), 1e-6);
  EXPECT_EQ(all_weights(evaluated_), all_weights(trained_));
}

// It updates nothing with it.
TEST_F(SidecarEvaluatorTest, MayBeCompiledWithAnotherOptimizer) {
  CompileOptions options = class_options();
  options.optimizer = "sgd";
  const train::CheckpointManager manager(trained_objects(), directory + "/objects");
  manager.save();
  trained_.save_weights(directory + "/weights/weights-1");
  for (const char* where : {"/objects", "/weights"}) {
    evaluated_.compile(options);
    const Logs logs =
        SidecarEvaluator(evaluated_, batches(),
                         {.checkpoint_dir = directory + where, .max_evaluations = 1, .verbose = 0})
            .start();
    EXPECT_NEAR(logs["loss"], trained_loss(), 1e-6) << where;
    EXPECT_EQ(evaluated_.optimizer().iterations().value().item<int64_t>(), 3) << where;
  }
}

TEST_F(SidecarEvaluatorTest, WithoutALastOneTheTimeoutEndsIt) {
  const SidecarEvaluator evaluator(
      evaluated_, batches(),
      {.checkpoint_dir = directory + "/saved", .verbose = 0, .timeout = milliseconds(1)});
  EXPECT_TRUE(evaluator.start().empty());
  trained_objects().save(directory + "/saved/ckpt");
  EXPECT_NEAR(evaluator.start()["loss"], trained_loss(), 1e-6);
}

TEST_F(SidecarEvaluatorTest, TakesWeightsAlone) {
  evaluated_.evaluate(batches(), {.verbose = 0});  // builds it
  trained_.save_weights(directory + "/saved/weights-1");
  const Logs logs =
      SidecarEvaluator(
          evaluated_, batches(),
          {.checkpoint_dir = directory + "/saved", .steps = 1, .max_evaluations = 1, .verbose = 0})
          .start();
  EXPECT_TRUE(logs.contains("accuracy"));
  EXPECT_EQ(all_weights(evaluated_), all_weights(trained_));
  EXPECT_EQ(evaluated_.optimizer().iterations().value().item<int64_t>(), 3);
}

// The numbers of Keras' test: 32 batches of 32 rows.
TEST_F(SidecarEvaluatorTest, TakesIterationsFromWhatModelCheckpointSaved) {
  const auto model = [] {
    const Sequential made({Input({3}), layers::Dense(10)});
    made.compile({.optimizer = "sgd", .loss = "mse"});
    return made;
  };
  const auto x = random::RandomGenerator::from_seed(1).uniform({1000, 3});
  const auto y = random::RandomGenerator::from_seed(2).uniform({1000, 10});
  const Sequential trained = model(), evaluated = model();
  trained.fit(x, y,
              {.batch_size = 32,
               .epochs = 1,
               .verbose = 0,
               .callbacks = {callbacks::ModelCheckpoint(
                   {.filepath = directory + "/saved/ckpt-{epoch}", .save_weights_only = true})}});
  SidecarEvaluator(evaluated, Data(x, y),
                   {.checkpoint_dir = directory + "/saved", .max_evaluations = 1, .verbose = 0})
      .start();
  EXPECT_EQ(evaluated.optimizer().iterations().value().item<int64_t>(), 32);
  EXPECT_EQ(all_weights(evaluated), all_weights(trained));
}

TEST_F(SidecarEvaluatorTest, RefusesCheckpointsWithoutWeightsOrIterations) {
  const SidecarEvaluator evaluator(evaluated_, batches(),
                                   {.checkpoint_dir = directory + "/saved", .verbose = 0});
  train::Checkpoint({{"model", trained_}}).save(directory + "/saved/ckpt");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { evaluator.start(); }),
              HasSubstr("`iterations` cannot be loaded from the checkpoint file"));
  const Sequential not_built({layers::Dense(10)});
  train::Checkpoint({{"model", not_built}, {"optimizer", trained_.optimizer()}})
      .save(directory + "/saved/ckpt");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { evaluator.start(); }),
              HasSubstr("Nothing to load"));
}

TEST_F(SidecarEvaluatorTest, ChecksItsOptions) {
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { SidecarEvaluator(evaluated_, batches(), {}); }),
              HasSubstr("checkpoint_dir"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                SidecarEvaluator(evaluated_, batches(),
                                 {.checkpoint_dir = directory, .max_evaluations = 0});
              }),
              HasSubstr("max_evaluations is 0"));
  const SidecarEvaluator not_compiled(small_classifier(), batches(), {.checkpoint_dir = directory});
  EXPECT_THROW(not_compiled.start(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::keras
