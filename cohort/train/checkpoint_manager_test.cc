#include "cohort/train/checkpoint_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_folder.h"
#include "cohort/train/checkpoints_iterator.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort::train {
namespace {

using internal::SimulatedFileSystem;
using testing::ElementsAre;
using testing::IsEmpty;

struct CheckpointManagerTest : testing::Test {
  CheckpointManager make(CheckpointManagerOptions options) {
    Checkpoint checkpoint({{"a", a}});
    use_file_system(checkpoint, files);
    return internal::manager_with_clock(checkpoint, "dir", std::move(options),
                                        [this] { return now; });
  }
  bool on_disk(const std::string& path) { return files.exists(path + ".index"); }

  SimulatedFileSystem files;
  std::shared_ptr<Numbers> a = numbers({1});
  double now = 1e9;
};

TEST_F(CheckpointManagerTest, KeepsTheLatest) {
  const CheckpointManager manager = make({.max_to_keep = 3});
  EXPECT_EQ(manager.latest_checkpoint(), std::nullopt);
  for (int i = 1; i <= 5; ++i) {
    now += 1;
    EXPECT_EQ(manager.save(), "dir/ckpt-" + std::to_string(i));
  }
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-3", "dir/ckpt-4", "dir/ckpt-5"));
  EXPECT_EQ(manager.latest_checkpoint(), "dir/ckpt-5");
  EXPECT_FALSE(on_disk("dir/ckpt-2"));
  EXPECT_FALSE(files.exists("dir/ckpt-2.data-00000-of-00001"));
  EXPECT_TRUE(on_disk("dir/ckpt-3"));
}

TEST_F(CheckpointManagerTest, GoesOnWithTheListThatItFinds) {
  {
    const CheckpointManager first = make({.max_to_keep = 2});
    first.save();
    now += 1;
    first.save();
  }
  now += 1;
  const CheckpointManager second = make({.max_to_keep = 2});
  EXPECT_THAT(second.checkpoints(), ElementsAre("dir/ckpt-1", "dir/ckpt-2"));
  EXPECT_EQ(second.restore_or_initialize(), "dir/ckpt-2");
  now += 1;
  EXPECT_EQ(second.save(), "dir/ckpt-3");
  EXPECT_THAT(second.checkpoints(), ElementsAre("dir/ckpt-2", "dir/ckpt-3"));
  EXPECT_FALSE(on_disk("dir/ckpt-1"));
}

TEST_F(CheckpointManagerTest, WithoutALimitAllAreKept) {
  const CheckpointManager manager = make({});
  for (int i = 0; i < 7; ++i) manager.save();
  EXPECT_EQ(manager.checkpoints().size(), 7u);
}

TEST_F(CheckpointManagerTest, OneStaysForEverySoManyHours) {
  const CheckpointManager manager = make({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2});
  for (int i = 1; i <= 7; ++i) {
    now += 3600;
    manager.save();
  }
  std::vector<int> left;
  for (int i = 1; i <= 7; ++i) {
    if (on_disk("dir/ckpt-" + std::to_string(i))) left.push_back(i);
  }
  // 2 is two hours after the start; 4 and 6 are two hours after the one before.
  EXPECT_THAT(left, ElementsAre(2, 4, 6, 7));
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-7"));
  const CheckpointManager next = make({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2});
  EXPECT_THAT(next.checkpoints(), ElementsAre("dir/ckpt-7"))
      << "those kept for good are not listed";
}

TEST_F(CheckpointManagerTest, NoHoursKeepNone) {
  const CheckpointManager manager = make({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 0});
  for (int i = 0; i < 3; ++i) manager.save();
  EXPECT_FALSE(on_disk("dir/ckpt-1"));
  EXPECT_FALSE(on_disk("dir/ckpt-2"));
}

TEST_F(CheckpointManagerTest, SavesOnlyWhenTheIntervalHasPassed) {
  int64_t step = 0;
  const CheckpointManager manager =
      make({.checkpoint_interval = 10, .step_counter = StepCounter([&] { return step; })});
  EXPECT_EQ(manager.checkpoint_interval(), 10);
  EXPECT_TRUE(manager.save());
  EXPECT_FALSE(manager.save()) << "the same step";
  step = 9;
  EXPECT_FALSE(manager.save());
  EXPECT_TRUE(manager.save({.check_interval = false}));
  EXPECT_FALSE(manager.save({.check_interval = false})) << "the same step";
  step = 18;
  EXPECT_FALSE(manager.save());
  step = 19;
  EXPECT_TRUE(manager.save());
  step = 25;
  EXPECT_EQ(manager.restore_or_initialize(), manager.latest_checkpoint());
  step = 30;
  EXPECT_FALSE(manager.save()) << "counted from the restore";
}

TEST_F(CheckpointManagerTest, AFailedSaveIsStillDue) {
  int64_t step = 0;
  const CheckpointManager manager =
      make({.checkpoint_interval = 10, .step_counter = StepCounter([&] { return step; })});
  manager.save();
  step = 10;
  files.set_capacity(1);
  EXPECT_THROW(manager.save(), ResourceExhaustedError);
  files.set_capacity(1 << 20);
  EXPECT_TRUE(manager.save());
}

// The checkpoint is there, but nobody would find it after a restart.
TEST_F(CheckpointManagerTest, ASaveThatCannotBecomeTheLatestIsStillDue) {
  int64_t step = 0;
  const CheckpointManager manager =
      make({.checkpoint_interval = 10, .step_counter = StepCounter([&] { return step; })});
  manager.save();
  step = 10;
  files.set_hook([](const std::string& call) {
    if (call.ends_with(" to 'dir/checkpoint'")) throw ResourceExhaustedError("no space");
  });
  EXPECT_THROW(manager.save(), ResourceExhaustedError);
  EXPECT_EQ(internal::find_latest(files, "dir"), "dir/ckpt-1");
  files.set_hook({});
  EXPECT_EQ(manager.save({.check_interval = false}), "dir/ckpt-3");
  EXPECT_EQ(internal::find_latest(files, "dir"), "dir/ckpt-3");
}

TEST_F(CheckpointManagerTest, NumbersMayBeGiven) {
  const CheckpointManager manager = make({.checkpoint_name = "model"});
  EXPECT_EQ(manager.save({.checkpoint_number = 500}), "dir/model-500");
  EXPECT_EQ(manager.checkpoint().save_counter(), 1);
  EXPECT_EQ(manager.save({.checkpoint_number = 500}), "dir/model-500");
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/model-500"));
}

TEST_F(CheckpointManagerTest, InitializesWhereThereIsNothing) {
  bool initialized = false;
  const CheckpointManager manager = make({.init_fn = [&] { initialized = true; }});
  EXPECT_EQ(manager.restore_or_initialize(), std::nullopt);
  EXPECT_TRUE(initialized);
  manager.save();
  initialized = false;
  EXPECT_EQ(manager.restore_or_initialize(), "dir/ckpt-1");
  EXPECT_FALSE(initialized);
}

TEST_F(CheckpointManagerTest, FallsBackWhereTheLatestIsDamaged) {
  const CheckpointManager manager = make({});
  manager.save();
  a->values = {2};
  manager.save();
  files.set_content("/dir/ckpt-2.index", "damaged");
  EXPECT_THROW(manager.restore_or_initialize(), DataLossError);
  EXPECT_EQ(manager.restore_or_initialize({.fall_back = true}), "dir/ckpt-1");
  EXPECT_THAT(a->values, ElementsAre(1));
}

TEST_F(CheckpointManagerTest, FallsBackWhereTheStateFileIsMissing) {
  const CheckpointManager before = make({});
  before.save();
  before.save();
  files.remove("dir/checkpoint");
  EXPECT_EQ(make({}).restore_or_initialize(), std::nullopt);
  const CheckpointManager manager = make({});
  EXPECT_EQ(manager.restore_or_initialize({.fall_back = true}), "dir/ckpt-2");
  EXPECT_EQ(manager.save(), "dir/ckpt-3");
}

TEST_F(CheckpointManagerTest, AsynchronousSavesAreListedWhenTheyAreThere) {
  const CheckpointManager manager = make({.max_to_keep = 2});
  for (int i = 0; i < 4; ++i) {
    now += 1;
    manager.save({.checkpoint = {.enable_async = true}});
  }
  manager.checkpoint().wait();
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-3", "dir/ckpt-4"));
  EXPECT_FALSE(on_disk("dir/ckpt-2"));
}

TEST_F(CheckpointManagerTest, AManagerGivenUpFinishesItsSave) {
  make({}).save({.checkpoint = {.enable_async = true}});
  EXPECT_EQ(internal::find_latest(files, "dir"), "dir/ckpt-1");
}

TEST_F(CheckpointManagerTest, WhatCannotBeDeletedIsTriedAgain) {
  const CheckpointManager manager = make({.max_to_keep = 1});
  manager.save();
  bool refuse = true;
  files.set_hook([&](const std::string& call) {
    if (refuse && call.find("removing 'dir/ckpt-1.index'") != call.npos) {
      throw PermissionDeniedError("not now");
    }
  });
  now += 1;
  EXPECT_EQ(manager.save(), "dir/ckpt-2");
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-1", "dir/ckpt-2"));
  refuse = false;
  now += 1;
  manager.save();
  EXPECT_THAT(manager.checkpoints(), ElementsAre("dir/ckpt-3"));
  EXPECT_FALSE(on_disk("dir/ckpt-1"));
}

TEST_F(CheckpointManagerTest, OptionsAreChecked) {
  EXPECT_THROW(make({.max_to_keep = 0}), InvalidArgumentError);
  EXPECT_THROW(make({.max_to_keep = -1}), InvalidArgumentError);
  EXPECT_THROW(make({.checkpoint_interval = 5}), InvalidArgumentError);
  EXPECT_THROW(
      make({.checkpoint_interval = 0, .step_counter = StepCounter([] { return int64_t{0}; })}),
      InvalidArgumentError);
  EXPECT_THROW(make({.checkpoint_name = "../ckpt"}), InvalidArgumentError);
  EXPECT_THROW(make({.checkpoint_name = ""}), InvalidArgumentError);
}

TEST_F(CheckpointManagerTest, ADamagedStateFileIsNotTakenForAnEmptyDirectory) {
  make({}).save();
  std::string text = files.content("/dir/checkpoint");
  text[text.size() / 2] ^= 4;
  files.set_content("/dir/checkpoint", text);
  const CheckpointManager manager = make({});
  EXPECT_THROW(manager.latest_checkpoint(), DataLossError);
  EXPECT_THROW(manager.save(), DataLossError);
  EXPECT_THROW(manager.restore_or_initialize(), DataLossError);
  EXPECT_EQ(manager.restore_or_initialize({.fall_back = true}), "dir/ckpt-1");
  EXPECT_EQ(manager.save(), "dir/ckpt-2");
}

struct CheckpointsIteratorTest : testing::Test {
  internal::TemporaryFolder folder;
  const std::string directory = folder / "training";
};

TEST_F(CheckpointsIteratorTest, GivesEachNewLatestOnce) {
  using std::chrono::milliseconds;
  const Checkpoint checkpoint({{"a", numbers({1})}});
  auto iterator = checkpoints_iterator(directory, {.timeout = milliseconds(1)});
  EXPECT_EQ(iterator.next(), std::nullopt);
  const std::string first = checkpoint.save(directory + "/ckpt");
  EXPECT_EQ(iterator.next(), first);
  EXPECT_EQ(iterator.next(), std::nullopt);
  checkpoint.save(directory + "/ckpt");
  const std::string third = checkpoint.save(directory + "/ckpt");
  EXPECT_EQ(iterator.next(), third);
}

TEST_F(CheckpointsIteratorTest, WaitsUntilTheTimeoutFunctionSaysThatAllIsDone) {
  int asked = 0;
  const Checkpoint checkpoint({{"a", numbers({1})}});
  std::vector<std::string> seen;
  for (const std::string& path :
       checkpoints_iterator(directory, {.timeout = std::chrono::milliseconds(1), .timeout_fn = [&] {
                                          if (++asked == 2) checkpoint.save(directory + "/ckpt");
                                          return asked == 4;
                                        }})) {
    seen.push_back(path);
  }
  EXPECT_THAT(seen, ElementsAre(directory + "/ckpt-1"));
  EXPECT_EQ(asked, 4);
}

TEST_F(CheckpointsIteratorTest, SaysOnceThatTheLatestIsGone) {
  const std::string path = Checkpoint({{"a", numbers({1})}}).save(directory + "/ckpt");
  std::filesystem::remove(path + ".index");
  auto iterator = checkpoints_iterator(directory, {.timeout = std::chrono::milliseconds(0)});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(iterator.next(), std::nullopt);
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("but it is not there");
  EXPECT_NE(first, log.npos);
  EXPECT_EQ(log.find("but it is not there", first + 1), log.npos) << log;
}

TEST_F(CheckpointsIteratorTest, SeesWhatAnotherThreadSaves) {
  std::thread trainer([this] { Checkpoint({{"a", numbers({1})}}).save(directory + "/ckpt"); });
  auto iterator = checkpoints_iterator(directory, {.timeout = std::chrono::seconds(30),
                                                   .poll_interval = std::chrono::milliseconds(1)});
  EXPECT_EQ(iterator.next(), directory + "/ckpt-1");
  trainer.join();
}

// Whoever only reads goes on; whoever will save knows it before an epoch of work.
TEST_F(CheckpointManagerTest, ASecondWriterHearsOfTheFirstWhenItRestores) {
  make({}).save();
  {
    const auto first = files.lock("dir/.cohort-writer.lock", "process 12 on host");
    testing::internal::CaptureStderr();
    EXPECT_EQ(make({}).restore_or_initialize(), "dir/ckpt-1");
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        testing::AllOf(testing::HasSubstr("'dir'"), testing::HasSubstr("'process 12 on host'")));
  }
  const CheckpointManager alone = make({});
  alone.save();
  testing::internal::CaptureStderr();
  alone.restore_or_initialize();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::Not(testing::HasSubstr("another process")));
}

}  // namespace
}  // namespace cohort::train
