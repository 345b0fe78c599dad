#include "cohort/keras/callbacks/model_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/keras/callbacks/file_name.h"
#include "cohort/keras/training/testing_fit.h"

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
  std::vector<std::string> saved() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".index") names.push_back(entry.path().stem());
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
  const Sequential other = small_classifier(8);
  const optimizers::Adam optimizer;
  train::Checkpoint({{"model", other}, {"optimizer", optimizer}}).read(directory + "/e3");
  other(make_images(1, float32).images);
  EXPECT_EQ(all_weights(other), all_weights(model));
  EXPECT_EQ(optimizer.iterations().value().item<int64_t>(), 6);
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
  EXPECT_THAT(saved(), ElementsAre("1", "3"));
  EXPECT_EQ(checkpoint.best(), 2);
}

TEST_F(ModelCheckpointTest, WithoutWhatItMonitorsItWarns) {
  ::testing::internal::CaptureStderr();
  fit(ModelCheckpoint({.filepath = directory + "/x", .save_best_only = true}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("'val_loss'"), HasSubstr("loss, accuracy")));
  EXPECT_TRUE(saved().empty());
}

TEST_F(ModelCheckpointTest, WeightsAreSavedAndLoaded) {
  fit(ModelCheckpoint({.filepath = directory + "/best"}), 1);
  model.save_weights(directory + "/weights");
  const Sequential other = small_classifier(8);
  other.load_weights(directory + "/weights");
  other(make_images(1, float32).images);
  EXPECT_EQ(all_weights(other), all_weights(model));
}

}  // namespace
}  // namespace cohort::keras
