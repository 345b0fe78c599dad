#include "cohort/train/checkpoint.h"

#include <ATen/ops/complex.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_fork.h"
#include "cohort/data/dataset.h"
#include "cohort/ops/random.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/saving/checkpoint_directory.h"
#include "cohort/train/saving/latest_checkpoint.h"
#include "cohort/train/testing_checkpoint.h"

namespace cohort::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CheckpointTest, AChildOfForkHasNoThreadThatSaves) {
  auto checkpoint = std::make_unique<Checkpoint>(make({{"a", numbers({1, 2})}}));
  checkpoint->save("dir/ckpt", {.enable_async = true});
  checkpoint->wait();
  EXPECT_THAT(internal::in_forked_child([&]() -> std::string {
                std::string text = "no error";
                try {
                  checkpoint->save("dir/ckpt", {.enable_async = true});
                } catch (const FailedPreconditionError& error) {
                  text = error.what();
                }
                checkpoint.reset();
                return text;
              }),
              HasSubstr("saves asynchronously was made before this process was forked"));
  EXPECT_EQ(checkpoint->save("dir/ckpt"), "dir/ckpt-2");
}

TEST_F(CheckpointTest, RestoresWhatWasSaved) {
  const auto a = numbers({1, 2});
  const auto b = numbers({3});
  const Checkpoint checkpoint = make({{"b", b}, {"a", a}});
  EXPECT_EQ(checkpoint.save("dir/ckpt"), "dir/ckpt-1");
  a->values = {7, 8};
  b->values = {9};
  checkpoint.restore("dir/ckpt-1").assert_consumed();
  EXPECT_THAT(a->values, ElementsAre(1, 2));
  EXPECT_THAT(b->values, ElementsAre(3));
}

TEST_F(CheckpointTest, ConjugatesAreSavedAsTheyAre) {
  struct Conjugates final : Trackable {
    bool has_checkpoint_values() const override { return true; }
    std::vector<CheckpointValue> checkpoint_values() override {
      return {{.attribute = kVariableValue, .parts = {{Leaf(numbers.conj())}}}};
    }
    const Tensor numbers = at::complex(at::ones({3}), at::ones({3}));
  };
  const auto saved = std::make_shared<Conjugates>();
  make({{"z", saved}}).save("dir/ckpt");
  const internal::BundleReader bundle(files, "dir/ckpt-1");
  const Tensor read = at::empty_like(saved->numbers);
  bundle.read("z/.ATTRIBUTES/VARIABLE_VALUE", read.data_ptr());
  EXPECT_TRUE(at::equal(read, saved->numbers.conj().resolve_conj()));
}

TEST_F(CheckpointTest, KeysArePathsOfNames) {
  const auto model = std::make_shared<Node>();
  model->add("linear.weight", numbers({1}));
  make({{"model", model}}).save("dir/ckpt");
  const internal::BundleReader bundle(files, "dir/ckpt-1");
  std::vector<std::string> names;
  for (const auto& [name, entry] : bundle.entries()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH",
                                 "model/linear..weight/.ATTRIBUTES/VARIABLE_VALUE",
                                 "save_counter/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST_F(CheckpointTest, TheRootMayBeAnObjectOfTheUsers) {
  const auto root = std::make_shared<Node>();
  const auto w = numbers({1});
  root->add("w", w);
  Checkpoint checkpoint((TrackableHandle(root)));
  use_file_system(checkpoint, files);
  checkpoint.save("dir/ckpt");
  EXPECT_TRUE(internal::BundleReader(files, "dir/ckpt-1").contains("w/.ATTRIBUTES/VARIABLE_VALUE"));
  w->values = {2};
  checkpoint.restore("dir/ckpt-1").assert_consumed();
  EXPECT_THAT(w->values, ElementsAre(1));
}

TEST_F(CheckpointTest, SavesAreCountedAndTheLatestIsKnown) {
  const Checkpoint checkpoint = make({{"a", numbers({1})}});
  EXPECT_EQ(latest(), std::nullopt);
  checkpoint.save("dir/ckpt");
  EXPECT_EQ(checkpoint.save("dir/ckpt"), "dir/ckpt-2");
  EXPECT_EQ(checkpoint.save_counter(), 2);
  EXPECT_EQ(latest(), "dir/ckpt-2");
  const Checkpoint other = make({{"a", numbers({0})}});
  other.restore(latest()).assert_consumed();
  EXPECT_EQ(other.save_counter(), 2);
  EXPECT_EQ(other.save("dir/ckpt"), "dir/ckpt-3");
}

TEST_F(CheckpointTest, WriteCountsNothing) {
  const auto a = numbers({1});
  const Checkpoint checkpoint = make({{"a", a}});
  EXPECT_EQ(checkpoint.write("dir/best"), "dir/best");
  EXPECT_EQ(checkpoint.save_counter(), 0);
  EXPECT_EQ(latest(), std::nullopt);
  a->values = {2};
  checkpoint.write("dir/best");
  a->values = {3};
  make({{"a", a}}).read("dir/best").assert_consumed();
  EXPECT_THAT(a->values, ElementsAre(2));
}

TEST_F(CheckpointTest, ReadLeavesTheSaveCounter) {
  const auto a = numbers({1});
  make({{"a", a}}).save("dir/ckpt");
  const Checkpoint checkpoint = make({{"a", a}});
  checkpoint.read("dir/ckpt-1").assert_existing_objects_matched();
  EXPECT_EQ(checkpoint.save_counter(), 0);
}

TEST_F(CheckpointTest, ACheckpointGivenUpFinishesItsSave) {
  const auto a = numbers({1});
  make({{"a", a}}).save("dir/ckpt", {.enable_async = true});
  EXPECT_EQ(latest(), "dir/ckpt-1");
}

TEST_F(CheckpointTest, ADirectoryHasManySpellings) {
  const auto a = numbers({1});
  const Checkpoint one = make({{"a", a}});
  const Checkpoint two = make({{"a", a}});
  one.write("dir/one");
  two.write("./dir/../dir/two");
  two.write("dir//three");
}

TEST_F(CheckpointTest, TheLatestMayBeFoundByItsNumber) {
  const Checkpoint checkpoint = make({{"a", numbers({1})}});
  for (int i = 0; i < 11; ++i) checkpoint.save("dir/ckpt");
  const train::LatestOptions fall_back{.fall_back = true};
  EXPECT_EQ(internal::find_latest(files, "dir", fall_back), "dir/ckpt-11");
  files.remove("dir/ckpt-11.index");
  EXPECT_EQ(latest(), std::nullopt);
  EXPECT_EQ(internal::find_latest(files, "dir", fall_back), "dir/ckpt-10");
  files.set_content("/dir/checkpoint", "damaged");
  EXPECT_THAT(thrown<DataLossError>([&] { latest(); }), HasSubstr("'dir/ckpt-10'"));
  EXPECT_EQ(internal::find_latest(files, "dir", fall_back), "dir/ckpt-10");
  files.remove("dir/checkpoint");
  EXPECT_EQ(latest(), std::nullopt);
  EXPECT_EQ(internal::find_latest(files, "dir", fall_back), "dir/ckpt-10");
  EXPECT_EQ(internal::find_latest(files, "none", fall_back), std::nullopt);
}

TEST_F(CheckpointTest, OneObjectOfTwoNamesIsSavedOnce) {
  const auto shared = numbers({1});
  const auto model = std::make_shared<Node>();
  model->add("first", shared);
  model->add("second", shared);
  model->add("self", model);
  const Checkpoint checkpoint = make({{"model", model}});
  checkpoint.save("dir/ckpt");
  EXPECT_EQ(internal::BundleReader(files, "dir/ckpt-1").entries().size(), 3u);
  shared->values = {2};
  checkpoint.restore("dir/ckpt-1").assert_consumed();
  EXPECT_THAT(shared->values, ElementsAre(1));
  model->children[2].second.reset();  // ends the cycle
  model->children.pop_back();
}

TEST_F(CheckpointTest, AllDifferencesAreListedAndNothingChanges) {
  make({{"a", numbers({1})}, {"b", numbers({1, 2})}, {"c", numbers({3})}}).save("dir/ckpt");
  const auto a = numbers({7, 7});
  const auto b = numbers({8});
  const auto c = numbers({9});
  const Checkpoint checkpoint = make({{"a", a}, {"b", b}, {"c", c}});
  const std::string text = thrown<InvalidArgumentError>([&] { checkpoint.restore("dir/ckpt-1"); });
  EXPECT_THAT(text, HasSubstr("a: the checkpoint has float32 [1], the program float32 [2]"));
  EXPECT_THAT(text, HasSubstr("b: the checkpoint has float32 [2], the program float32 [1]"));
  EXPECT_THAT(c->values, ElementsAre(9));
  EXPECT_EQ(checkpoint.save_counter(), 0);
}

TEST_F(CheckpointTest, WhatIsMissingOnEitherSideIsSaidWhenAsked) {
  make({{"a", numbers({1})}, {"old", numbers({2})}}).save("dir/ckpt");
  const auto fresh = numbers({5});
  const Checkpoint checkpoint = make({{"a", numbers({0})}, {"fresh", fresh}});
  const LoadStatus status = checkpoint.restore("dir/ckpt-1");
  EXPECT_THAT(fresh->values, ElementsAre(5));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { status.assert_existing_objects_matched(); }),
              HasSubstr("no values for 1 objects of this program:\n  fresh"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                make({{"a", numbers({0})}}).restore("dir/ckpt-1").assert_consumed();
              }),
              HasSubstr("took:\n  old"));
}

TEST_F(CheckpointTest, AMatchIsTrivialWhereOnlyTheRootIsFound) {
  make({{"a", numbers({1})}}).save("dir/ckpt");
  make({{"a", numbers({0})}, {"new", numbers({5})}})
      .restore("dir/ckpt-1")
      .expect_partial()
      .assert_nontrivial_match();
  const Checkpoint other = make({{"new", numbers({5})}});
  const LoadStatus status = other.restore("dir/ckpt-1");
  status.expect_partial();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { status.assert_nontrivial_match(); }),
              HasSubstr("no values for\n  new"));
  const Checkpoint empty = make({});
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { empty.restore("dir/ckpt-1").expect_partial().assert_nontrivial_match(); }),
              HasSubstr("no objects were added"));
  EXPECT_THROW(empty.restore(std::nullopt).assert_nontrivial_match(), InvalidArgumentError);
}

TEST_F(CheckpointTest, RestoringFromNothing) {
  const Checkpoint checkpoint = make({{"a", numbers({1})}});
  const LoadStatus status = checkpoint.restore(latest());
  EXPECT_EQ(status.path(), "");
  status.expect_partial();
  EXPECT_THROW(status.assert_existing_objects_matched(), InvalidArgumentError);
  EXPECT_THROW(checkpoint.restore("dir/ckpt-1"), NotFoundError);
}

TEST_F(CheckpointTest, NamesAreChecked) {
  EXPECT_THROW(make({{"a", numbers({1})}, {"a", numbers({1})}}), InvalidArgumentError);
  EXPECT_THROW(make({{"", numbers({1})}}), InvalidArgumentError);
  EXPECT_THROW(make({{"save_counter", numbers({1})}}), InvalidArgumentError);
  EXPECT_THROW(TrackableHandle(std::shared_ptr<Node>()), InvalidArgumentError);
}

TEST_F(CheckpointTest, ADamagedOneChangesNothing) {
  const auto a = numbers({1});
  const auto b = numbers({2});
  const Checkpoint checkpoint = make({{"a", a}, {"b", b}});
  checkpoint.save("dir/ckpt");
  const std::string path = "/dir/ckpt-1.data-00000-of-00001";
  std::string bytes = files.content(path);
  for (char& byte : bytes) {
    byte = static_cast<char>(byte ^ 1);
    files.set_content(path, bytes);
    a->values = {7};
    b->values = {8};
    EXPECT_THROW(checkpoint.restore("dir/ckpt-1"), DataLossError);
    EXPECT_THAT(a->values, ElementsAre(7));
    EXPECT_THAT(b->values, ElementsAre(8));
    byte = static_cast<char>(byte ^ 1);
  }
}

TEST_F(CheckpointTest, DamageToWhatIsNotRestoredIsFoundToo) {
  make({{"a", numbers({1})}, {"other", numbers({2})}}).save("dir/ckpt");
  const std::string path = "/dir/ckpt-1.data-00000-of-00001";
  std::string bytes = files.content(path);
  const internal::BundleReader bundle(files, "dir/ckpt-1");
  bytes[bundle.entry("other/.ATTRIBUTES/VARIABLE_VALUE").offset] ^= 1;
  files.set_content(path, bytes);
  EXPECT_THROW(make({{"a", numbers({0})}}).restore("dir/ckpt-1"), DataLossError);
}

TEST_F(CheckpointTest, FallsBackToTheCheckpointBefore) {
  const auto a = numbers({1});
  const Checkpoint checkpoint = make({{"a", a}});
  checkpoint.save("dir/ckpt");
  a->values = {2};
  checkpoint.save("dir/ckpt");
  a->values = {3};
  checkpoint.save("dir/ckpt");
  files.set_content("/dir/ckpt-3.index", "damaged");
  files.remove("/dir/ckpt-2.data-00000-of-00001");
  EXPECT_THROW(checkpoint.restore("dir/ckpt-3"), DataLossError);
  const LoadStatus status = checkpoint.restore("dir/ckpt-3", {.fall_back = true});
  EXPECT_EQ(status.path(), "dir/ckpt-1");
  EXPECT_THAT(a->values, ElementsAre(1));
  EXPECT_EQ(checkpoint.save("dir/ckpt"), "dir/ckpt-2");
  files.set_content("/dir/ckpt-1.index", "damaged");
  EXPECT_THROW(checkpoint.restore("dir/ckpt-1", {.fall_back = true}), DataLossError);
}

TEST_F(CheckpointTest, AsynchronousSavesHoldTheValuesOfTheirMoment) {
  const auto a = numbers({1});
  const Checkpoint checkpoint = make({{"a", a}});
  for (int i = 1; i <= 3; ++i) {
    a->values = {static_cast<float>(i)};
    checkpoint.save("dir/ckpt", {.enable_async = true});
    a->values = {-1};
  }
  checkpoint.wait();
  for (int i = 1; i <= 3; ++i) {
    make({{"a", a}}).restore("dir/ckpt-" + std::to_string(i)).assert_consumed();
    EXPECT_THAT(a->values, ElementsAre(i));
  }
  EXPECT_EQ(latest(), "dir/ckpt-3");
}

TEST_F(CheckpointTest, ErrorsOfAsynchronousSavesComeAtTheNextCallOnce) {
  const auto a = numbers({1});
  const Checkpoint checkpoint = make({{"a", a}});
  checkpoint.save("dir/ckpt");
  files.set_capacity(10);
  checkpoint.save("dir/ckpt", {.enable_async = true});
  EXPECT_THROW(checkpoint.wait(), ResourceExhaustedError);
  checkpoint.wait();
  checkpoint.save("dir/ckpt", {.enable_async = true});
  EXPECT_THROW(checkpoint.save("dir/ckpt"), ResourceExhaustedError);
  EXPECT_EQ(latest(), "dir/ckpt-1");
}

TEST_F(CheckpointTest, AFullDiskCostsOnlyTheSaveThatMetIt) {
  const auto a = numbers(std::vector<float>(100, 1));
  const Checkpoint checkpoint = make({{"a", a}});
  checkpoint.save("dir/ckpt");
  const auto before = files.file_paths();
  files.set_capacity(1500);
  EXPECT_THROW(checkpoint.save("dir/ckpt"), ResourceExhaustedError);
  EXPECT_EQ(files.file_paths(), before) << "nothing is left behind";
  EXPECT_EQ(latest(), "dir/ckpt-1");
  files.set_capacity(1 << 20);
  checkpoint.save("dir/ckpt");
  checkpoint.restore(latest()).assert_consumed();
}

TEST_F(CheckpointTest, TheWriterOfADirectoryIsOne) {
  files.make_directories("dir");
  const Checkpoint checkpoint = make({{"a", numbers({1})}});
  {
    const auto other_process = files.lock("dir/.cohort-writer.lock", "process 12 on host");
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { checkpoint.save("dir/ckpt"); }),
                HasSubstr("process 12 on host"));
  }
  checkpoint.save("dir/ckpt");
  make({{"a", numbers({1})}}).save("dir/other");  // of this process
  files.remove("dir/.cohort-writer.lock");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { checkpoint.save("dir/ckpt"); }),
              HasSubstr("removed or replaced"));
}

// The thread that gives it up stands at the lock of the list of directories, which this one has
// just left.
TEST_F(CheckpointTest, ADirectoryThatIsBeingGivenUpIsNotTakenForAnothersWriters) {
  for (int i = 0; i < 10; ++i) {
    auto first = internal::CheckpointDirectory::for_writing(files, "dir");
    const std::weak_ptr<internal::CheckpointDirectory> given_up = first;
    std::thread other;
    files.set_hook([&](const std::string& call) {
      if (call.find("locking 'other/") == call.npos) return;
      other = std::thread([&] { first.reset(); });
      while (!given_up.expired()) std::this_thread::yield();
    });
    const auto kept = internal::CheckpointDirectory::for_writing(files, "other");
    files.set_hook({});
    EXPECT_NO_THROW(internal::CheckpointDirectory::for_writing(files, "dir"));
    other.join();
  }
}

TEST_F(CheckpointTest, LeftOversOfDeadWritersAreRemoved) {
  files.make_directories("dir");
  files.set_content("/dir/.cohort-tmp-ckpt-7.data", "half");
  make({{"a", numbers({1})}}).save("dir/ckpt");
  for (const std::string& path : files.file_paths()) {
    EXPECT_THAT(path, testing::Not(HasSubstr("cohort-tmp")));
  }
}

TEST_F(CheckpointTest, GeneratorsGoOnWhereTheyWere) {
  const auto generator = random::RandomGenerator::from_seed(3);
  generator.next_u64();
  const Checkpoint checkpoint = make({{"rng", generator}});
  checkpoint.save("dir/ckpt");
  const uint64_t next = generator.next_u64();
  generator.next_u64();
  checkpoint.restore("dir/ckpt-1").assert_consumed();
  EXPECT_EQ(generator.next_u64(), next);
}

TEST_F(CheckpointTest, IteratorsGoOnWhereTheyWere) {
  const auto dataset = data::Dataset::range(100).shuffle(10, {.seed = 1}).batch(2);
  auto iterator = dataset.iterator();
  for (int i = 0; i < 7; ++i) iterator.next();
  make({{"input", iterator}}).save("dir/ckpt");
  const Structure next = iterator.get_next();

  auto resumed = dataset.iterator();
  const Checkpoint checkpoint = make({{"input", resumed}});
  auto moved = std::move(resumed);
  checkpoint.restore("dir/ckpt-1").assert_consumed();
  EXPECT_TRUE(moved.get_next().tensor().equal(next.tensor()));

  auto other = data::Dataset::range(100).batch(2).iterator();
  const auto a = numbers({7});
  EXPECT_THROW(make({{"input", other}, {"a", a}}).restore("dir/ckpt-1"), InvalidArgumentError);
  EXPECT_EQ(other.get_next().tensor()[0].item<int64_t>(), 0);
}

}  // namespace
}  // namespace cohort::train
