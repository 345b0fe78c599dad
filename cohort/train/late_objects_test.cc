// Objects that appear after the checkpoint was restored.
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/objects/pending_value.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/testing_checkpoint.h"

namespace cohort::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CheckpointTest, ObjectsThatAppearLaterGetTheirValues) {
  const auto saved = std::make_shared<Node>();
  const auto saved_layer = std::make_shared<Node>();
  saved->add("layer", saved_layer);
  saved_layer->add("kernel", numbers({4, 5}));
  make({{"model", saved}}).save("dir/ckpt");

  const auto model = std::make_shared<Node>();
  const Checkpoint checkpoint = make({{"model", model}});
  const LoadStatus status = checkpoint.restore("dir/ckpt-1");
  status.assert_existing_objects_matched();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { status.assert_consumed(); }),
              HasSubstr("model/layer/kernel"));
  files.remove("dir/ckpt-1.index");  // an open checkpoint stays readable
  const auto layer = std::make_shared<Node>();
  const auto kernel = numbers({0, 0});
  model->add("layer", layer);
  layer->add("kernel", kernel);
  EXPECT_THAT(kernel->values, ElementsAre(4, 5));
  status.assert_consumed();
}

TEST_F(CheckpointTest, TheRootItselfMayGetItsChildrenLater) {
  const auto saved = std::make_shared<Node>();
  saved->add("w", numbers({4}));
  Checkpoint writer((TrackableHandle(saved)));
  use_file_system(writer, files);
  writer.write("dir/ckpt");
  const auto root = std::make_shared<Node>();
  Checkpoint reader((TrackableHandle(root)));
  use_file_system(reader, files);
  const LoadStatus status = reader.read("dir/ckpt");
  const auto w = numbers({0});
  root->add("w", w);
  EXPECT_THAT(w->values, ElementsAre(4));
  status.assert_consumed();
}

// A layer whose build failed and is repeated makes its weights twice.
TEST_F(CheckpointTest, ALateObjectTakesThePlaceOfAnEarlierOneOfItsName) {
  const auto saved = std::make_shared<Node>();
  saved->add("kernel", numbers({4}));
  make({{"model", saved}}).save("dir/ckpt");
  const auto model = std::make_shared<Node>();
  make({{"model", model}}).restore("dir/ckpt-1").expect_partial();
  const auto first = numbers({0});
  model->add("kernel", first);
  EXPECT_THAT(first->values, ElementsAre(4));
  model->children.clear();
  const auto second = numbers({0});
  model->add("kernel", second);
  EXPECT_THAT(second->values, ElementsAre(4));
}

// Its files were closed once all values were given out, and are those of another save now.
TEST_F(CheckpointTest, ALateObjectGetsNoValueOfASaveThatCameAfterTheRestore) {
  const auto saved = std::make_shared<Node>();
  const auto value = numbers({4});
  saved->add("kernel", value);
  const Checkpoint writer = make({{"model", saved}});
  writer.write("dir/ckpt");
  const auto model = std::make_shared<Node>();
  make({{"model", model}}).read("dir/ckpt").expect_partial();
  const auto first = numbers({0});
  model->add("kernel", first);
  EXPECT_THAT(first->values, ElementsAre(4));
  value->values = {5};
  writer.write("dir/ckpt");
  model->children.clear();
  const auto second = numbers({0});
  EXPECT_THAT(thrown<DataLossError>([&] { model->add("kernel", second); }),
              HasSubstr("'dir/ckpt' was rewritten since it was restored"));
  EXPECT_THAT(second->values, ElementsAre(0));
}

TEST_F(CheckpointTest, ANameThatLeadsToAnotherObjectDoesNotKeepTheRightOneOut) {
  const auto a = numbers({1});
  const auto b = numbers({2});
  const auto saved = std::make_shared<Node>();
  saved->add("first", a);
  saved->add("one", a);
  saved->add("two", b);
  make({{"model", saved}}).save("dir/ckpt");
  // Here "first" is what is "two" there.
  const auto one = numbers({0});
  const auto two = numbers({0});
  const auto model = std::make_shared<Node>();
  model->add("one", one);
  model->add("first", two);
  model->add("two", two);
  make({{"model", model}}).restore("dir/ckpt-1").expect_partial();
  EXPECT_THAT(one->values, ElementsAre(1));
  EXPECT_THAT(two->values, ElementsAre(2));
}

TEST_F(CheckpointTest, ASaveBeforeObjectsAreMadeKeepsWhatWasRestoredForThem) {
  const auto saved = std::make_shared<Node>();
  const auto layer = std::make_shared<Node>();
  saved->add("layer", layer);
  layer->add("kernel", numbers({4, 5}));
  layer->add("again", layer->children[0].second);
  make({{"model", saved}, {"other", numbers({6})}}).save("dir/ckpt");

  const auto unbuilt = std::make_shared<Node>();
  unbuilt->awaits = true;
  const Checkpoint between = make({{"model", unbuilt}, {"other", numbers({0})}});
  between.restore("dir/ckpt-1");
  EXPECT_EQ(between.save("dir/ckpt"), "dir/ckpt-2");
  files.remove("dir/ckpt-1.index");

  const auto model = std::make_shared<Node>();
  const auto built = std::make_shared<Node>();
  const auto kernel = numbers({0, 0});
  model->add("layer", built);
  built->add("kernel", kernel);
  built->add("again", kernel);
  const auto other = numbers({0});
  make({{"model", model}, {"other", other}}).restore("dir/ckpt-2").assert_consumed();
  EXPECT_THAT(kernel->values, ElementsAre(4, 5));
  EXPECT_THAT(other->values, ElementsAre(6));
}

// A hostile checkpoint has 100,000: the stack of the thread that saves would end before.
TEST_F(CheckpointTest, ObjectsThatAreNestedDeeperThanAnyProgramsAreNotCarriedOver) {
  const auto chain_of = [](int levels) {
    std::shared_ptr<Trackable> chain = numbers({1});
    for (int i = 0; i < levels; ++i) {
      const auto around = std::make_shared<Node>();
      around->add("x", chain);
      chain = around;
    }
    return chain;
  };
  for (const int levels : {500, 1500}) {
    make({{"root", chain_of(levels)}}).write("dir/deep");
    const auto root = std::make_shared<Node>();
    root->awaits = true;
    const Checkpoint fresh = make({{"root", root}});
    fresh.restore("dir/deep").expect_partial();
    if (levels < 1000) {
      fresh.write("dir/again");
      continue;
    }
    EXPECT_THAT(thrown<DataLossError>([&] { fresh.write("dir/again"); }),
                HasSubstr("'dir/deep', which was restored, nests objects more than 1000"));
  }
}

TEST_F(CheckpointTest, AnObjectOfTheSameNameWithoutValuesConsumesNone) {
  make({{"x", numbers({1})}}).save("dir/ckpt");
  const LoadStatus status = make({{"x", std::make_shared<Node>()}}).restore("dir/ckpt-1");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { status.assert_consumed(); }),
              HasSubstr("took:\n  x"));
}

TEST_F(CheckpointTest, LateObjectsThatDoNotFitAreRefusedWhenTheyAppear) {
  const auto saved = std::make_shared<Node>();
  saved->add("kernel", numbers({4, 5}));
  make({{"model", saved}}).save("dir/ckpt");
  const auto model = std::make_shared<Node>();
  make({{"model", model}}).restore("dir/ckpt-1").expect_partial();
  EXPECT_THROW(model->add("kernel", numbers({0, 0, 0})), InvalidArgumentError);
}

TEST_F(CheckpointTest, AChildMayBeMadeFromItsPendingValue) {
  const auto saved = std::make_shared<TrackableList>();
  const auto first = numbers({1, 2, 3}), second = numbers({4});
  saved->add(*first, first);
  saved->add(*second, second);
  make({{"list", saved}}).save("dir/ckpt");

  const auto list = std::make_shared<TrackableList>();
  EXPECT_EQ(list->pending_value(0, {3}, float32), nullptr);  // nothing was restored
  const LoadStatus status = make({{"list", list}}).restore("dir/ckpt-1");
  EXPECT_EQ(list->pending_value(0, {4}, float32), nullptr);
  EXPECT_EQ(list->pending_value(0, {3}, float64), nullptr);
  EXPECT_EQ(list->pending_value(2, {3}, float32), nullptr);
  const auto pending = list->pending_value(0, {3}, float32);
  ASSERT_NE(pending, nullptr);
  EXPECT_TRUE(at::equal(pending->read({.start = {0}, .length = {3}}), at::tensor({1.F, 2.F, 3.F})));
  EXPECT_TRUE(at::equal(pending->read({.start = {1}, .length = {2}}), at::tensor({2.F, 3.F})));
  EXPECT_THROW(pending->read({.start = {2}, .length = {2}}), InvalidArgumentError);
  EXPECT_THROW(status.assert_consumed(), InvalidArgumentError);  // to read is not to take

  const auto child = numbers({7, 8, 9});
  pending->hand_over(*child);
  list->add(*child, child);
  EXPECT_THAT(child->values, ElementsAre(7, 8, 9));  // not restored once more
  const auto other = numbers({0});
  list->add(*other, other);
  EXPECT_THAT(other->values, ElementsAre(4));
  status.assert_consumed();
}

}  // namespace
}  // namespace cohort::train
