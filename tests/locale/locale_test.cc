// What a program writes and reads again is the same after it has set a locale, in which 1500 may be
// printed as 1.500 and 2.5 as 2,5. GTK and Qt set one without being asked.
#include <cohort/cohort.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/testing_folder.h"
#include "cohort/core/testing_locale.h"

namespace tf = cohort;

namespace {

using cohort::internal::for_each_locale;
using cohort::internal::ScopedLocale;
using cohort::internal::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with('.')) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Gives fit a known loss.
class LossOf : public tf::keras::callbacks::Callback {
 public:
  explicit LossOf(double loss) : loss_(loss) {}
  void on_epoch_end(int64_t, tf::keras::Logs& logs) override { logs.set("loss", loss_); }

 private:
  double loss_;
};

tf::keras::Sequential compiled_model() {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1, {.name = "out"})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

template <class... Callbacks>
void fit(const tf::keras::Sequential& model, int64_t epochs, Callbacks&&... callbacks) {
  const tf::Tensor x = tf::random::normal({8, 2});
  model.fit(x, x.sum({1}, true),
            {.batch_size = 4,
             .epochs = epochs,
             .verbose = 0,
             .callbacks = {std::forward<Callbacks>(callbacks)...}});
}

TEST(LocaleTest, SafetensorsHaveTheirShapes) {
  for_each_locale([] {
    const TemporaryFolder folder;
    const tf::Tensor weight = tf::random::normal({1500, 2});
    tf::train::save_safetensors(folder / "w.safetensors", {{"weight", weight}});
    EXPECT_THAT(bytes_of(folder / "w.safetensors").substr(0, 200),
                HasSubstr("\"shape\":[1500,2],\"data_offsets\":[0,12000]"));
    const auto read = tf::train::load_safetensors(folder / "w.safetensors");
    EXPECT_TRUE(read.at("weight").equal(weight));
  });
}

TEST(LocaleTest, CheckpointsHaveTheirNumbers) {
  for_each_locale([] {
    const TemporaryFolder folder;
    const tf::Variable value(1.0);
    const tf::train::Checkpoint checkpoint({{"value", value}});
    tf::train::CheckpointManager manager(checkpoint, folder.path(), {.max_to_keep = 2});
    EXPECT_EQ(manager.save({.checkpoint_number = 1000}), folder / "ckpt-1000");
    EXPECT_THAT(names_in(folder.path()),
                ElementsAre("checkpoint", "ckpt-1000.data-00000-of-00001", "ckpt-1000.index"));
    value.assign(2.0);
    EXPECT_EQ(tf::train::latest_checkpoint(folder.path()), folder / "ckpt-1000");
    checkpoint.restore(folder / "ckpt-1000");
    EXPECT_EQ(value.value().item<float>(), 1);
    // The state file's dates are numbers with a point.
    EXPECT_THAT(bytes_of(folder / "checkpoint"), HasSubstr("all_model_checkpoint_timestamps: 1"));
    tf::train::CheckpointManager later(checkpoint, folder.path(), {.max_to_keep = 2});
    EXPECT_THAT(later.checkpoints(), ElementsAre(folder / "ckpt-1000"));
  });
}

// Saved before the locale was set, and after it.
TEST(LocaleTest, IteratorsGoOn) {
  const auto dataset = tf::data::Dataset::range(5000).shuffle(2000, {.seed = 7});
  const auto rest_of = [](tf::data::DatasetIterator& iterator) {
    std::vector<int64_t> rest;
    while (const auto element = iterator.next()) rest.push_back(element->tensor().item<int64_t>());
    return rest;
  };
  auto iterator = dataset.iterator();
  for (int i = 0; i < 1500; ++i) iterator.next();
  const std::string classic = iterator.state().serialize();
  const std::vector<int64_t> expected = rest_of(iterator);
  ASSERT_EQ(expected.size(), 3500U);
  for_each_locale([&] {
    const auto again = tf::data::Dataset::range(5000).shuffle(2000, {.seed = 7});
    auto restored = again.iterator();
    restored.restore(tf::data::IteratorState::parse(classic));
    EXPECT_EQ(restored.state().serialize(), classic);
    EXPECT_EQ(rest_of(restored), expected);
  });
}

TEST(LocaleTest, BackupsAreRestored) {
  for_each_locale([] {
    const TemporaryFolder folder;
    struct Died {};
    tf::keras::callbacks::LambdaCallback dies({.on_epoch_end = [](int64_t epoch, auto&) {
      if (epoch == 1) throw Died();
    }});
    int64_t first_epoch = -1;
    tf::keras::callbacks::LambdaCallback sees({.on_epoch_begin = [&](int64_t epoch) {
      if (first_epoch < 0) first_epoch = epoch;
    }});
    {
      const ScopedLocale classic("C");  // as it ran before
      EXPECT_THROW(
          fit(compiled_model(), 3, tf::keras::callbacks::BackupAndRestore(folder / "backup"), dies),
          Died);
    }
    fit(compiled_model(), 3, tf::keras::callbacks::BackupAndRestore(folder / "backup"), sees);
    EXPECT_EQ(first_epoch, 2);
  });
}

TEST(LocaleTest, CsvNumbersHaveAPoint) {
  for_each_locale([] {
    const TemporaryFolder folder;
    const std::string file = folder.write("a.csv", "2.5e-50,2.5,1000,2.5e-50\n");
    const tf::data::CsvDataset rows(file, {tf::float32, tf::float32, tf::int64, tf::float64});
    const tf::Structure row = rows.iterator().get_next();
    EXPECT_EQ(row[0].tensor().item<float>(), 0.0f);
    EXPECT_EQ(row[1].tensor().item<float>(), 2.5f);
    EXPECT_EQ(row[2].tensor().item<int64_t>(), 1000);
    EXPECT_EQ(row[3].tensor().item<double>(), 2.5e-50);
    const tf::data::CsvDataset commas(folder.write("b.csv", "\"2,5\"\n"), {tf::float32});
    EXPECT_THROW(commas.iterator().get_next(), tf::InvalidArgumentError);
  });
}

TEST(LocaleTest, LogsAndFileNamesHaveAPoint) {
  for_each_locale([] {
    const TemporaryFolder folder;
    using namespace tf::keras::callbacks;
    fit(compiled_model(), 1, LossOf(1234.5), CSVLogger(folder / "log.csv"),
        ModelCheckpoint({.filepath = folder / "saved/{epoch:04d}-{loss:.2f}-{loss:09.3e}-{loss}",
                         .save_weights_only = true}));
    EXPECT_EQ(bytes_of(folder / "log.csv"), "epoch,loss\n0,1234.5\n");
    EXPECT_THAT(names_in(folder / "saved"),
                testing::Contains("0001-1234.50-1.234e+03-1234.5.index"));
  });
}

TEST(LocaleTest, EventFilesHaveNumbersInTheirNames) {
  for_each_locale([] {
    const TemporaryFolder folder;
    auto writer = tf::summary::create_file_writer(folder.path());
    {
      const auto scope = writer.as_default(1000);
      tf::summary::scalar("loss", 1.0);
    }
    writer.close();
    const std::vector<std::string> names = names_in(folder.path());
    ASSERT_EQ(names.size(), 1U);
    EXPECT_THAT(names[0],
                MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..*\\.[0-9]+\\.[0-9]+.*"));
  });
}

TEST(LocaleTest, WhatIsPrintedOfATrainingHasAPoint) {
  for_each_locale([] {
    const tf::Tensor x = tf::random::normal({8, 2});
    testing::internal::CaptureStdout();
    compiled_model().fit(
        x, x.sum({1}, true),
        {.batch_size = 4, .epochs = 1, .verbose = 2, .callbacks = {LossOf(1234.5)}});
    EXPECT_THAT(testing::internal::GetCapturedStdout(), StartsWith("Epoch 1/1\n"));
    EXPECT_EQ(tf::internal::str(tf::Structure(1000), ' ', tf::Structure(0.5)), "1000 0.5");
    const tf::keras::Sequential model({tf::keras::layers::Dense(1000, {.name = "wide"})});
    model(tf::random::normal({1, 2}));
    std::ostringstream summary;
    model.summary(summary);
    EXPECT_THAT(summary.str(), HasSubstr("Total params: 3000 (11.72 KB)"));
  });
}

// The locale decides which bytes of a name are one letter.
TEST(LocaleTest, PatternsMatchTheSameFiles) {
  const TemporaryFolder folder;
  for (const char* name : {"a.csv", "\xc3\xbc.csv", "B.csv"}) folder.write(name, "");
  for_each_locale([&] {
    std::vector<std::string> found;
    for (const tf::Structure& file :
         tf::data::Dataset::list_files(folder / "?.csv", {.shuffle = false})) {
      found.push_back(std::string(file.strings().item()));
    }
    EXPECT_THAT(found, ElementsAre(folder / "B.csv", folder / "a.csv"));
  });
}

}  // namespace
