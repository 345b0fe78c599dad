// Row 37 of the fault matrix, on a disk: a checkpoint of another model is refused with a list of
// all that differs, and changes nothing.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "two_values.h"

namespace cohort::faults {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using train::numbers;

// A whole number where others have a float.
class Count final : public train::Trackable {
 public:
  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    return {{.attribute = train::kVariableValue, .parts = {{Leaf(at::zeros({2}, int64))}}}};
  }
  void prepare_restore(train::RestoreSource& source) override {
    source.read(train::kVariableValue, {2}, int64, [this](const Tensor&) { changed = true; });
  }

  bool changed = false;
};

class OtherModelTest : public testing::Test {
 protected:
  OtherModelTest() : path_(TwoValues(1).checkpoint.save(directory_.path("ckpt"))) {}

  ScratchDirectory directory_;
  std::string path_;  // "a" of shape [2], "b" of shape [3], save_counter
};

TEST_F(OtherModelTest, EveryOtherShapeIsListed) {
  const auto a = numbers({9, 9, 9});
  const auto b = numbers({9});
  const train::Checkpoint checkpoint({{"a", a}, {"b", b}});
  const std::string text = thrown<InvalidArgumentError>([&] { checkpoint.restore(path_); });
  EXPECT_THAT(text, AllOf(HasSubstr("a: the checkpoint has float32 [2], the program float32 [3]"),
                          HasSubstr("b: the checkpoint has float32 [3], the program float32 [1]")));
  EXPECT_EQ(a->values, std::vector<float>(3, 9));
  EXPECT_EQ(b->values, std::vector<float>(1, 9));
}

TEST_F(OtherModelTest, ARefusalIsNotFollowedByAWarningOfValuesWithoutAnObject) {
  testing::internal::CaptureStderr();
  const train::Checkpoint checkpoint({{"a", numbers({9})}});
  EXPECT_THROW(checkpoint.restore(path_), InvalidArgumentError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(OtherModelTest, AnotherDtypeLeavesTheObjectsThatFitAsTheyWere) {
  const auto count = std::make_shared<Count>();
  const auto b = numbers({9, 9, 9});
  const train::Checkpoint checkpoint({{"a", count}, {"b", b}});
  const std::string text = thrown<InvalidArgumentError>([&] { checkpoint.restore(path_); });
  EXPECT_THAT(text, AllOf(HasSubstr("a: the checkpoint has float32 [2], the program int64 [2]"),
                          Not(HasSubstr("b: "))));
  EXPECT_FALSE(count->changed);
  EXPECT_EQ(b->values, std::vector<float>(3, 9));
}

TEST_F(OtherModelTest, WhatTheCheckpointLacksIsListed) {
  const auto kept = numbers({9});
  const train::Checkpoint checkpoint(
      {{"a", numbers({0, 0})}, {"b", numbers({0, 0, 0})}, {"c", kept}, {"d", numbers({9})}});
  const train::LoadStatus status = checkpoint.restore(path_);
  const std::string text =
      thrown<InvalidArgumentError>([&] { status.assert_existing_objects_matched(); });
  EXPECT_THAT(text, AllOf(HasSubstr("\n  c"), HasSubstr("\n  d"), Not(HasSubstr("\n  a"))));
  EXPECT_EQ(kept->values, std::vector<float>{9});
}

TEST_F(OtherModelTest, WhatTheProgramLacksIsListed) {
  const train::Checkpoint checkpoint({{"other", numbers({9})}});
  const train::LoadStatus status = checkpoint.restore(path_);
  const std::string text = thrown<InvalidArgumentError>([&] { status.assert_consumed(); });
  EXPECT_THAT(text, AllOf(HasSubstr("a"), HasSubstr("b"), HasSubstr("other")));
  status.expect_partial();
}

}  // namespace
}  // namespace cohort::faults
