// A training that ends at any moment and is begun again ends with the bits of one that did not.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/callbacks/backup_removal.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using callbacks::BackupAndRestore;
using callbacks::Callback;
using distribute::Strategy;
using ::testing::HasSubstr;

struct Died {};

// Ends fit as a kill would: after so many batches, without a word to other callbacks.
class Death : public Callback {
 public:
  explicit Death(int64_t batches) : left_(batches) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    if (left_-- == 0) throw Died();
  }

 private:
  int64_t left_;
};

struct Outcome {
  std::vector<double> weights;
  std::vector<double> losses;

  bool operator==(const Outcome&) const = default;
};

struct BackupTest : ::testing::Test {
  BackupTest() {
    directory = ::testing::TempDir() + "backup_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~BackupTest() override { std::filesystem::remove_all(directory); }

  // Three epochs of four batches, shuffled, with dropout. Dies after `batches`, if that is not -1.
  Outcome train(const Strategy& strategy, uint64_t seed, int64_t batches,
                callbacks::SaveFreq save_freq, const std::string& where = "backup") {
    random::set_seed(seed);
    const auto scope = strategy.scope();
    const auto initializer = initializers::GlorotUniform({.seed = seed});
    const Sequential model(
        {layers::Flatten(),
         layers::Dense(8,
                       {.activation = "relu", .kernel_initializer = initializer, .name = "hidden"}),
         layers::Dropout(0.3),
         layers::Dense(3, {.kernel_initializer = initializer, .name = "output"})});
    model.compile(class_options());
    const LabelledImages data = make_images(13, float32);
    const History history = model.fit(
        data.images, data.labels,
        {.batch_size = 4,
         .epochs = 3,
         .verbose = 0,
         .callbacks = {BackupAndRestore(directory + "/" + where, {.save_freq = save_freq}),
                       Death(batches)}});
    return {all_weights(model), {history["loss"].back(), history["accuracy"].back()}};
  }

  // Dies again and again.
  Outcome train_with_deaths(const Strategy& strategy, callbacks::SaveFreq save_freq) {
    for (const int64_t batches : {1, 4, 0, 2}) {
      try {
        return train(strategy, seed_of_next_life(), batches, save_freq);
      } catch (const Died&) {
      }
    }
    return train(strategy, seed_of_next_life(), -1, save_freq);
  }

  // Another one once there is a backup, which decides.
  uint64_t seed_of_next_life() const {
    return train::latest_checkpoint(directory + "/backup") ? 99 : 5;
  }

  std::string directory;
};

TEST_F(BackupTest, GoesOnAfterTheLastStep) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const Outcome calm = train(strategy, 5, -1, 1);
    EXPECT_EQ(train_with_deaths(strategy, 1), calm) << replicas;
  }
}

TEST_F(BackupTest, GoesOnAfterTheLastEpochOrASaveNowAndThen) {
  const auto strategy = distribute::mirrored(2);
  const Outcome calm = train(strategy, 5, -1, "epoch");
  EXPECT_EQ(train_with_deaths(strategy, 3), calm);
  EXPECT_THROW(train(strategy, 5, 5, "epoch"), Died);
  EXPECT_THROW(train(strategy, 6, 3, "epoch"), Died);
  EXPECT_EQ(train(strategy, 7, -1, "epoch"), calm);
}

// A callback that trains the model some more, as curricula do.
TEST_F(BackupTest, SavesOnAfterAFitWithinACallback) {
  const Sequential model({layers::Dense(2)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = at::ones({4, 3});
  const Tensor y = at::ones({4, 2});
  int64_t saved = 0;
  callbacks::LambdaCallback within({.on_epoch_begin =
                                        [&](int64_t epoch) {
                                          if (epoch == 0) model.fit(x, y, {.verbose = 0});
                                        },
                                    .on_epoch_end =
                                        [&](int64_t, Logs&) {
                                          saved += train::latest_checkpoint(directory + "/backup")
                                                       ? 1
                                                       : 0;
                                        }});
  const History history = model.fit(
      x, y,
      {.epochs = 2, .verbose = 0, .callbacks = {BackupAndRestore(directory + "/backup"), within}});
  EXPECT_EQ(history["loss"].size(), 2u);
  EXPECT_EQ(saved, 2);
}

TEST_F(BackupTest, IsRemovedWhenTrainingIsOver) {
  const auto strategy = distribute::mirrored(1);
  EXPECT_THROW(train(strategy, 5, 5, "epoch"), Died);
  const auto entries = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/backup")) {
      names.push_back(entry.path().filename());
    }
    return names;
  };
  EXPECT_THAT(entries(), ::testing::Contains("checkpoint"));
  train(strategy, 5, -1, "epoch");
  EXPECT_THAT(entries(), ::testing::IsEmpty()) << "neither the backup nor its lock";
}

// A metric that only the first step makes, and those of several outputs, are part of a backup in
// the middle of an epoch.
TEST_F(BackupTest, HoldsMetricsThatStepsMake) {
  class Watched : public Model {
   public:
    Watched() {
      track("a", a_);
      track("b", b_);
    }
    Structure call(const Structure& x, const CallOptions&) override {
      const Tensor hidden = a_(x.tensor());
      add_metric(hidden.square(), "energy");
      return tuple(hidden, b_(x.tensor()));
    }

   private:
    layers::LayerHandle a_ = layers::Dense(1, {.kernel_initializer = "ones"});
    layers::LayerHandle b_ = layers::Dense(1, {.kernel_initializer = "ones"});
  };
  const auto run = [&](int64_t batches, const std::string& where) {
    const auto strategy = distribute::mirrored(2);
    const auto scope = strategy.scope();
    const ModelHandle model = std::make_shared<Watched>();
    model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
    const Tensor x = make_images(12, float32).images.flatten(1);
    return model.fit(
        x, tuple(x.sum(1, true), x.mean(1, true)),
        {.batch_size = 2,
         .epochs = 2,
         .verbose = 0,
         .callbacks = {BackupAndRestore(directory + "/" + where, {.save_freq = 1}), Death(batches)},
         .shuffle = false});
  };
  const History calm = run(-1, "calm");
  EXPECT_THROW(run(9, "killed"), Died);  // in the middle of the second epoch
  const History resumed = run(-1, "killed");
  for (const char* name : {"loss", "energy", "output_1_loss", "output_2_mae"}) {
    EXPECT_EQ(resumed[name].back(), calm[name].back()) << name;
  }
}

// Metrics that the first step makes, or none but training, without a call of the model before it.
class Observed : public Model {
 public:
  explicit Observed(const bool& is_watched) : is_watched_(is_watched) {
    track("a", a_);
    track("b", b_);
  }
  Structure call(const Structure& x, const CallOptions& options) override {
    if (distribute::in_cross_replica_context()) {
      throw FailedPreconditionError("the model needs its replica");
    }
    const Tensor hidden = a_(x.tensor());
    if (options.training.value() && is_watched_) add_metric(hidden.square(), "in_training");
    add_metric(hidden, "always");
    return tuple(hidden, b_(x.tensor()));
  }

 private:
  const bool& is_watched_;
  layers::LayerHandle a_ = layers::Dense(1, {.kernel_initializer = "ones"});
  layers::LayerHandle b_ = layers::Dense(1, {.kernel_initializer = "ones"});
};

// Three epochs of six batches.
History fit_observed(std::vector<callbacks::CallbackArgument> list, const bool& is_watched = true) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const ModelHandle model = std::make_shared<Observed>(is_watched);
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = make_images(12, float32).images.flatten(1) / 100;
  return model.fit(
      x, tuple(x.sum(1, true), x.mean(1, true)),
      {.batch_size = 2, .epochs = 3, .verbose = 0, .callbacks = std::move(list), .shuffle = false});
}

TEST_F(BackupTest, RestoresMetricsByTheirNamesWhenStepsMakeThem) {
  const BackupAndRestore backup(directory + "/backup", {.save_freq = 1});
  const History calm = fit_observed({});
  EXPECT_THROW(fit_observed({BackupAndRestore(backup), Death(8)}), Died);
  const History resumed = fit_observed({BackupAndRestore(backup)});
  for (const char* name : {"loss", "in_training", "always", "output_1_loss", "output_2_mae"}) {
    ASSERT_EQ(resumed[name].size(), 2u) << name;
    EXPECT_EQ(resumed[name][0], calm[name][1]) << name;
    EXPECT_EQ(resumed[name][1], calm[name][2]) << name;
  }
}

// Epochs begin with sums of nothing, also those of a metric that only a later epoch makes.
TEST_F(BackupTest, SumsOfAnEpochEndWithIt) {
  const BackupAndRestore backup(directory + "/backup", {.save_freq = 1});
  const History calm = fit_observed({});
  EXPECT_THROW(fit_observed({BackupAndRestore(backup), Death(8)}), Died);
  bool is_watched = false;
  const callbacks::LambdaCallback watch(
      {.on_epoch_begin = [&](int64_t epoch) { is_watched = epoch == 2; }});
  ::testing::internal::CaptureStderr();
  const History resumed =
      fit_observed({callbacks::LambdaCallback(watch), BackupAndRestore(backup)}, is_watched);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::Not(HasSubstr("restored to no object")));
  EXPECT_EQ(resumed["in_training"].back(), calm["in_training"].back());
  EXPECT_EQ(resumed["always"].back(), calm["always"].back());
}

// As backups were before metrics had names in them.
TEST_F(BackupTest, FindsMetricsOfAnEarlierVersionByTheirPlaces) {
  class EarlierBackup : public Callback {
   public:
    explicit EarlierBackup(std::string directory) : directory_(std::move(directory)) {}
    void on_train_begin() override {
      const ModelHandle handle = model();
      const internal::FitState& fit = *training().fit;
      metrics_->set_found_by_place(true);
      manager_.emplace(
          train::Checkpoint({{"model", handle},
                             {"optimizer", handle.optimizer()},
                             {"metrics", metrics_},
                             {"random", distribute::Strategy(internal::strategy_of(*handle.get()))},
                             {"progress", fit.progress},
                             {"input", fit.input}}),
          directory_,
          train::CheckpointManagerOptions{.max_to_keep = 1,
                                          .checkpoint_name = internal::kBackupName});
    }
    void on_train_batch_end(int64_t, const Logs&) override {
      training().fit->settle();
      metrics_->set(training().metrics(*internal::model_of(model())));
      manager_->save();
    }
    void on_train_error() override { manager_.reset(); }

   private:
    internal::Training& training() const {
      return internal::Training::of(*internal::model_of(model()));
    }

    const std::string directory_;
    const std::shared_ptr<internal::ReportedMetrics> metrics_ =
        std::make_shared<internal::ReportedMetrics>();
    std::optional<train::CheckpointManager> manager_;
  };
  const auto run = [&](std::vector<callbacks::CallbackArgument> list) {
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones"})});
    model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
    const Tensor x = make_images(12, float32).images.flatten(1) / 100;
    return model.fit(x, x.sum(1, true),
                     {.batch_size = 2,
                      .epochs = 2,
                      .verbose = 0,
                      .callbacks = std::move(list),
                      .shuffle = false});
  };
  const History calm = run({});
  EXPECT_THROW(run({EarlierBackup(directory + "/backup"), Death(8)}), Died);
  const History resumed = run({BackupAndRestore(directory + "/backup")});
  ASSERT_EQ(resumed["mae"].size(), 1u);
  EXPECT_EQ(resumed["mae"].back(), calm["mae"].back());
  EXPECT_EQ(resumed["loss"].back(), calm["loss"].back());
}

// In the order in which files go, which a file system in memory tells.
std::vector<std::string> files_as_they_are_removed(const std::string& directory) {
  internal::SimulatedFileSystem files;
  files.make_directories("dir");
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files.set_content("/dir/" + entry.path().filename().string(), "");
  }
  internal::remove_backup(files, "dir");
  std::vector<std::string> removed;
  for (const std::string& call : files.log()) {
    const std::string removing = "removing 'dir/";
    if (!call.starts_with(removing)) continue;
    removed.push_back(call.substr(removing.size(), call.size() - removing.size() - 1));
  }
  return removed;
}

// The next fit goes on after the backup, or begins anew where that is gone: both end with the same
// bits.
TEST_F(BackupTest, AKillDuringItsRemovalHarmsNoLaterFit) {
  const auto strategy = distribute::mirrored(1);
  const Outcome calm = train(strategy, 5, -1, "epoch");
  size_t files = 1;
  for (size_t removed = 0; removed <= files; ++removed) {
    const std::string where = internal::str("backup", removed);
    EXPECT_THROW(train(strategy, 5, 5, "epoch", where), Died);
    const auto names = files_as_they_are_removed(directory + "/" + where);
    files = names.size();
    ASSERT_GE(files, 3u);  // state, index, data
    for (size_t i = 0; i < removed; ++i) {
      std::filesystem::remove(directory + "/" + where + "/" + names[i]);
    }
    EXPECT_EQ(train(strategy, 5, -1, "epoch", where), calm) << removed;
    EXPECT_TRUE(files_as_they_are_removed(directory + "/" + where).empty()) << removed;
  }
}

TEST_F(BackupTest, CtrlCSavesAndEndsAfterTheStep) {
  class Interrupt : public Callback {
    void on_train_batch_end(int64_t batch, const Logs&) override {
      if (batch == 2) ::raise(SIGINT);
    }
  };
  const Outcome calm = train(distribute::mirrored(1), 5, -1, "epoch");
  ::signal(SIGINT, SIG_DFL);  // which a shell in the background has changed
  const auto run = [&](std::vector<callbacks::CallbackArgument> list, uint64_t seed) -> Outcome {
    const auto strategy = distribute::mirrored(1);
    random::set_seed(seed);
    const auto scope = strategy.scope();
    const auto initializer = initializers::GlorotUniform({.seed = seed});
    const Sequential model(
        {layers::Flatten(),
         layers::Dense(8,
                       {.activation = "relu", .kernel_initializer = initializer, .name = "hidden"}),
         layers::Dropout(0.3),
         layers::Dense(3, {.kernel_initializer = initializer, .name = "output"})});
    model.compile(class_options());
    const LabelledImages data = make_images(13, float32);
    list.emplace_back(BackupAndRestore(directory + "/backup"));
    const History history =
        model.fit(data.images, data.labels,
                  {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = std::move(list)});
    return {all_weights(model), {history["loss"].back(), history["accuracy"].back()}};
  };
  try {
    run({Interrupt()}, 5);
    ADD_FAILURE() << "it was not interrupted";
  } catch (const InterruptedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("epoch 1 before step 4"));
  }
  EXPECT_EQ(run({}, 99), calm);
}

TEST_F(BackupTest, OfSeveralTasksIsOne) {
  const auto in_tasks = [&](uint64_t seed, int64_t batches) {
    std::vector<Outcome> outcomes(2);
    distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
      outcomes[static_cast<size_t>(task)] =
          train(strategy, seed, batches, 1, internal::str("task", task == 0 ? "s" : "-nowhere"));
    });
    return outcomes;
  };
  const auto calm = in_tasks(5, -1);
  EXPECT_EQ(calm[0], calm[1]);
  EXPECT_ANY_THROW(in_tasks(5, 5));  // the other task may only see that this one is gone
  const auto resumed = in_tasks(6, -1);
  EXPECT_EQ(resumed[0].losses, resumed[1].losses);
  EXPECT_EQ(resumed[0].weights, resumed[1].weights);
}

}  // namespace
}  // namespace cohort::keras
