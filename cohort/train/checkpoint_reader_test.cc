#include "cohort/train/checkpoint_reader.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/objects/testing_objects.h"

namespace cohort::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Rows of one table in two parts.
class TwoParts final : public Trackable {
 public:
  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    return {{.attribute = kVariableValue,
             .full_shape = {3, 2},
             .parts = {{Leaf(at::tensor({1, 2}, int64).view({1, 2})),
                        TensorSlice{.start = {0, 0}, .length = {1, 2}}},
                       {Leaf(at::tensor({3, 4, 5, 6}, int64).view({2, 2})),
                        TensorSlice{.start = {1, 0}, .length = {2, 2}}}}}};
  }
};

struct CheckpointReaderTest : data::FilesTest {
  CheckpointReaderTest() {
    Checkpoint checkpoint({{"a", numbers({1, 2})}, {"table", std::make_shared<TwoParts>()}});
    checkpoint.save(path("ckpt"));
    checkpoint.save(path("ckpt"));
  }
  static constexpr const char* kValueOfA = "a/.ATTRIBUTES/VARIABLE_VALUE";
};

TEST_F(CheckpointReaderTest, ListsNamesDtypesAndShapes) {
  EXPECT_THAT(
      list_variables(path("ckpt-1")),
      ElementsAre(
          CheckpointVariable{.name = "_CHECKPOINTABLE_OBJECT_GRAPH"},
          CheckpointVariable{.name = kValueOfA, .dtype = float32, .shape = {2}},
          CheckpointVariable{.name = "save_counter/.ATTRIBUTES/VARIABLE_VALUE", .dtype = int64},
          CheckpointVariable{
              .name = "table/.ATTRIBUTES/VARIABLE_VALUE", .dtype = int64, .shape = {3, 2}}));
}

TEST_F(CheckpointReaderTest, WhatIsPassedInPlaceOfACheckpointIsNamed) {
  const auto error = [](const std::string& from) {
    const std::string reading = thrown<NotFoundError>([&] { load_checkpoint(from); });
    const std::string restoring = thrown<NotFoundError>([&] {
      Checkpoint({{"a", numbers({1, 2})}}).restore(from);
    });
    EXPECT_THAT(restoring, HasSubstr(reading));
    return reading;
  };
  const std::string is_file = " is one of the files of checkpoint '" + path("ckpt-1") + "'";
  EXPECT_THAT(error(path("ckpt-1.index")), HasSubstr("'" + path("ckpt-1.index") + "'" + is_file));
  EXPECT_THAT(error(path("ckpt-1.data-00000-of-00001")), HasSubstr(is_file));
  EXPECT_THAT(error(path("ckpt-7")),
              AllOf(HasSubstr("there is no checkpoint '" + path("ckpt-7") + "'"),
                    HasSubstr("'" + path("ckpt-7.index") + "' is missing")));
  EXPECT_THAT(error(path("nowhere/ckpt-7.index")), HasSubstr("there is no checkpoint"));
  // A directory, which load_checkpoint takes, but restore does not.
  const auto restored = [&](const std::string& from) {
    return thrown<NotFoundError>([&] { Checkpoint({{"a", numbers({1, 2})}}).restore(from); });
  };
  EXPECT_EQ(load_checkpoint(path("")).path(), path("ckpt-2"));
  EXPECT_THAT(restored(path("")),
              AllOf(HasSubstr("is a directory"), HasSubstr("'" + path("ckpt-2") + "'")));
  std::filesystem::create_directory(path("empty"));
  EXPECT_THAT(error(path("empty")), HasSubstr("there is no checkpoint in it"));
  std::filesystem::create_directory(path("model"));
  write("model/model.json", "{}");
  EXPECT_THAT(error(path("model")), HasSubstr("models::load_model"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                Checkpoint({{"a", numbers({1, 2})}}).write(path("new/"));
              }),
              HasSubstr("'" + path("new/ckpt") + "'"));
}

TEST_F(CheckpointReaderTest, ReadsValuesByName) {
  const CheckpointReader reader = load_checkpoint(path("ckpt-1"));
  EXPECT_TRUE(reader.has_tensor(kValueOfA));
  EXPECT_FALSE(reader.has_tensor("a"));
  EXPECT_TRUE(at::equal(reader.get_tensor(kValueOfA), at::tensor({1.0f, 2.0f})));
  EXPECT_TRUE(at::equal(reader.get_tensor("table/.ATTRIBUTES/VARIABLE_VALUE"),
                        at::tensor({1, 2, 3, 4, 5, 6}, int64).view({3, 2})));
  EXPECT_EQ(reader.get_strings("_CHECKPOINTABLE_OBJECT_GRAPH").numel(), 1);
  EXPECT_TRUE(at::equal(load_variable(path("ckpt-1"), kValueOfA), reader.get_tensor(kValueOfA)));
}

TEST_F(CheckpointReaderTest, OfADirectoryItIsTheLatest) {
  EXPECT_EQ(load_checkpoint(directory).path(), path("ckpt-2"));
  EXPECT_EQ(load_checkpoint(path("ckpt-1")).path(), path("ckpt-1"));
}

TEST_F(CheckpointReaderTest, SaysWhatIsNotThere) {
  EXPECT_THAT(thrown<NotFoundError>([&] { load_checkpoint(path("none")); }), HasSubstr("none"));
  const CheckpointReader reader = load_checkpoint(directory);
  EXPECT_THAT(thrown<NotFoundError>([&] { reader.get_tensor("a"); }), HasSubstr(kValueOfA));
  EXPECT_THAT(thrown<NotFoundError>([&] { reader.get_tensor("b"); }), HasSubstr("variables()"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"); }),
      HasSubstr("get_strings"));
  EXPECT_THROW(reader.get_strings(kValueOfA), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::train
