// Features with any number of values in parse_example: ragged, sparse and filled up ones.
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/data/files/make_batched_features_dataset.h"
#include "cohort/data/files/parse_example.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::io {
namespace {

using internal::str;
using testing::ElementsAre;
using testing::HasSubstr;

// The features of TensorFlow's own example.
StringTensor ragged_records() {
  return StringTensor({ExampleBuilder()
                           .add_ints("v", {3, 1, 4, 1, 5, 9})
                           .add_ints("s1", {0, 2, 3, 3, 6})
                           .add_ints("s2", {0, 2, 3, 4})
                           .serialize(),
                       ExampleBuilder()
                           .add_ints("v", {2, 7, 1, 8, 2, 8, 1})
                           .add_ints("s1", {0, 3, 4, 5, 7})
                           .add_ints("s2", {0, 1, 1, 4})
                           .serialize()});
}

const ExampleFeatures kRagged = {
    {"f1", RaggedFeature(int64, {.value_key = "v"})},
    {"f2",
     RaggedFeature(int64, {.value_key = "v", .partitions = {RaggedFeature::RowSplits{"s1"}}})},
    {"f3", RaggedFeature(int64, {.value_key = "v",
                                 .partitions = {RaggedFeature::RowSplits{"s2"},
                                                RaggedFeature::RowSplits{"s1"}}})},
};

TEST(ParseRaggedExample, AsTensorFlowsOwnExample) {
  const Structure batch = parse_example(ragged_records(), kRagged);
  EXPECT_EQ(str(batch["f1"]), "<RaggedTensor [[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8, 1]]>");
  EXPECT_EQ(str(batch["f2"]),
            "<RaggedTensor [[[3, 1], [4], [], [1, 5, 9]], [[2, 7, 1], [8], [2], [8, 1]]]>");
  EXPECT_EQ(str(batch["f3"]),
            "<RaggedTensor [[[[3, 1], [4]], [[]], [[1, 5, 9]]], "
            "[[[2, 7, 1]], [], [[8], [2], [8, 1]]]]>");
  EXPECT_EQ(example_spec(kRagged, true).first_mismatch(batch), std::nullopt);
  const Structure one = parse_example(ragged_records().select(0, 0), kRagged);
  EXPECT_EQ(str(one["f1"]), "[3, 1, 4, 1, 5, 9]");
  EXPECT_EQ(str(one["f2"]), "<RaggedTensor [[3, 1], [4], [], [1, 5, 9]]>");
  EXPECT_EQ(str(one["f3"]), "<RaggedTensor [[[3, 1], [4]], [[]], [[1, 5, 9]]]>");
  EXPECT_EQ(example_spec(kRagged, false).first_mismatch(one), std::nullopt);
  // Records that are parsed one by one make the same batch.
  const auto apart =
      data::Dataset::from_tensor_slices(ragged_records())
          .map([](const StringTensor& record) { return parse_example(record, kRagged); })
          .batch(2);
  EXPECT_EQ(str(*apart.iterator().next()), str(batch));
  const Structure none = parse_example(StringTensor(), kRagged);
  EXPECT_EQ(example_spec(kRagged, true).first_mismatch(none), std::nullopt);
}

TEST(ParseRaggedExample, EveryKindOfPartition) {
  const StringTensor record({ExampleBuilder()
                                 .add_bytes("v", {"a", "b", "c", "d"})
                                 .add_ints("lengths", {1, 0, 3})
                                 .add_ints("starts", {0, 1, 1})
                                 .add_ints("limits", {1, 1, 4})
                                 .add_ints("ids", {0, 2, 2, 2})
                                 .serialize()});
  const auto parsed = [&](RaggedFeature::Partition partition) {
    return str(
        parse_example(record, {{"v", RaggedFeature::strings({.partitions = {partition}})}})["v"]);
  };
  const std::string expected = R"(<RaggedTensor [[["a"], [], ["b", "c", "d"]]]>)";
  EXPECT_EQ(parsed(RaggedFeature::RowLengths{"lengths"}), expected);
  EXPECT_EQ(parsed(RaggedFeature::RowStarts{"starts"}), expected);
  EXPECT_EQ(parsed(RaggedFeature::RowLimits{"limits"}), expected);
  EXPECT_EQ(parsed(RaggedFeature::ValueRowIds{"ids"}), expected);
  EXPECT_EQ(parsed(RaggedFeature::UniformRowLength{2}),
            R"(<RaggedTensor [[["a", "b"], ["c", "d"]]]>)");
  // At the end of the list they are dimensions of the values, before it rows of equal length.
  const ExampleFeatures uniform = {
      {"inner", RaggedFeature::strings({.value_key = "v",
                                        .partitions = {RaggedFeature::UniformRowLength{2},
                                                       RaggedFeature::UniformRowLength{2}}})},
      {"outer", RaggedFeature::strings({.value_key = "v",
                                        .partitions = {RaggedFeature::UniformRowLength{3},
                                                       RaggedFeature::RowLengths{"lengths"}}})}};
  const Structure batch = parse_example(record, uniform);
  EXPECT_EQ(RaggedTensor(batch["inner"]).flat_values().sizes(), (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(str(batch["outer"]), R"(<RaggedTensor [[[["a"], [], ["b", "c", "d"]]]]>)");
  EXPECT_EQ(example_spec(uniform, true).first_mismatch(batch), std::nullopt);
}

TEST(ParseRaggedExample, WrongPartitionsAreRefused) {
  const auto fails = [](std::vector<int64_t> numbers, RaggedFeature::Partition partition,
                        const char* text) {
    const StringTensor record(
        {ExampleBuilder().serialize(),
         ExampleBuilder().add_floats("v", {1, 2, 3}).add_ints("p", numbers).serialize()});
    const std::string said = thrown<InvalidArgumentError>([&] {
      parse_example(record, {{"v", RaggedFeature(float32, {.partitions = {partition}})}});
    });
    EXPECT_THAT(said, HasSubstr("feature 'v': "));
    EXPECT_THAT(said, HasSubstr(text));
  };
  fails({0, 2}, RaggedFeature::RowSplits{"p"}, "divided by 'p': the rows have 2 of 3 values");
  fails({1, 3}, RaggedFeature::RowSplits{"p"}, "row_splits begin with 0");
  fails({0, 2, 1, 3}, RaggedFeature::RowSplits{"p"}, "row 1 of 3 values would be [2, 1)");
  fails({}, RaggedFeature::RowSplits{"none"}, "row_splits begin with 0");
  fails({1, 9}, RaggedFeature::RowLengths{"p"}, "a row of length 9 where 2 values are left");
  fails({-1, 4}, RaggedFeature::RowLengths{"p"}, "a row of length -1");
  fails({1}, RaggedFeature::RowLengths{"p"}, "the rows have 1 of 3 values");
  fails({1, 2}, RaggedFeature::RowStarts{"p"}, "row_starts begin with 0");
  fails({0, 5}, RaggedFeature::RowStarts{"p"}, "would be [0, 5)");
  fails({3, 5}, RaggedFeature::RowLimits{"p"}, "would be [3, 5)");
  fails({0, 0}, RaggedFeature::ValueRowIds{"p"}, "there are 2 row ids of 3 values");
  fails({0, 2, 1}, RaggedFeature::ValueRowIds{"p"}, "row id 1 after 2");
  fails({}, RaggedFeature::UniformRowLength{2}, "has 3 values, which are no rows of length 2");
  fails({}, RaggedFeature::UniformRowLength{0}, "UniformRowLength is at least 1");
  const StringTensor bomb(
      {ExampleBuilder().add_ints("v", {1}).add_ints("p", {int64_t{1} << 60}).serialize()});
  EXPECT_THAT(
      thrown<ResourceExhaustedError>([&] {
        parse_example(
            bomb, {{"v", RaggedFeature(int64, {.partitions = {RaggedFeature::ValueRowIds{"p"}}})}});
      }),
      HasSubstr("has the row id 1152921504606846976 in 'p'"));
}

const ExampleFeatures kSparse = {
    {"row", SparseFeature("ix", "v", float32, 100)},
    {"grid", SparseFeature({"ix", "iy"}, "v", float32, {100, 3})},
};

StringTensor sparse_records() {
  return StringTensor({ExampleBuilder()
                           .add_ints("ix", {20, 3})
                           .add_ints("iy", {0, 2})
                           .add_floats("v", {0.5, -1})
                           .serialize(),
                       ExampleBuilder().serialize()});
}

TEST(ParseSparseExample, MakesSparseTensors) {
  const Structure batch = parse_example(sparse_records(), kSparse);
  EXPECT_EQ(str(SparseTensor(batch["row"])),
            "SparseTensor(indices=[[0, 3], [0, 20]], values=[-1.0, 0.5], dense_shape=[2,100])");
  EXPECT_EQ(str(SparseTensor(batch["grid"])),
            "SparseTensor(indices=[[0, 3, 2], [0, 20, 0]], values=[-1.0, 0.5], "
            "dense_shape=[2,100,3])");
  EXPECT_EQ(example_spec(kSparse, true).first_mismatch(batch), std::nullopt);
  const Structure one = parse_example(sparse_records().select(0, 0), kSparse);
  EXPECT_EQ(str(SparseTensor(one["row"])),
            "SparseTensor(indices=[[3], [20]], values=[-1.0, 0.5], dense_shape=[100])");
  EXPECT_EQ(example_spec(kSparse, false).first_mismatch(one), std::nullopt);
}

TEST(ParseSparseExample, WhatDoesNotFitIsRefused) {
  const auto fails = [](const ExampleBuilder& example, const SparseFeature& feature,
                        const char* text) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  parse_example(StringTensor({example.serialize()}), {{"s", feature}});
                }),
                HasSubstr(text));
  };
  ExampleBuilder example;
  example.add_ints("i", {4, 2}).add_ints("v", {1, 2}).add_ints("one", {1}).add_ints("same", {1, 1});
  const SparseFeature fits("i", "v", int64, 5);
  EXPECT_NO_THROW(parse_example(StringTensor({example.serialize()}), {{"s", fits}}));
  fails(example, SparseFeature("i", "v", int64, 4), "has the index 4 in 'i', outside of [0, 4)");
  fails(example, SparseFeature("one", "v", int64, 4),
        "has 2 values in 'v' of record 0, but 1 indices");
  fails(example, SparseFeature("same", "v", int64, 4),
        "two values at one place, index 1 in 'same'");
  fails(example, SparseFeature("i", "v", int64, 5, {.already_sorted = true}), "do not ascend");
  fails(example, SparseFeature("i", "v", float32, 5), "float values are expected");
  fails(example, SparseFeature("i", "v", float64, 5), "has the dtype float64");
  fails(example, SparseFeature("i", "v", int64, 0), "cannot have the size [0]");
  fails(example, SparseFeature({"i", "i"}, "v", int64, {int64_t{1} << 40, int64_t{1} << 40}),
        "cannot have the size");
  fails(example,
        SparseFeature(std::vector<std::string>{"i"}, "v", int64, std::vector<int64_t>{2, 2}),
        "has 1 index keys");
}

TEST(ParseSequenceFeature, FillsUpRows) {
  const StringTensor records({ExampleBuilder().add_ints("x", {1, 2, 3, 4}).serialize(),
                              ExampleBuilder().add_bytes("w", {"a"}).serialize(),
                              ExampleBuilder().add_ints("x", {5, 6}).serialize()});
  const ExampleFeatures features = {
      {"x",
       FixedLenSequenceFeature(
           {2}, int64, {.allow_missing = true, .default_value = at::scalar_tensor(-1, at::kLong)})},
      {"w", FixedLenSequenceFeature::strings(
                {}, {.allow_missing = true, .default_value = StringTensor::scalar("?")})}};
  const Structure batch = parse_example(records, features);
  EXPECT_EQ(str(batch["x"]), "[[[1, 2], [3, 4]], [[-1, -1], [-1, -1]], [[5, 6], [-1, -1]]]");
  EXPECT_EQ(str(batch["w"]), R"([["?"], ["a"], ["?"]])");
  EXPECT_EQ(example_spec(features, true).first_mismatch(batch), std::nullopt);
  const Structure one = parse_example(records.select(0, 0), features);
  EXPECT_EQ(str(one["x"]), "[[1, 2], [3, 4]]");
  EXPECT_EQ(example_spec(features, false).first_mismatch(one), std::nullopt);
  const auto fails = [&](const FixedLenSequenceFeature& feature, const char* text) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  parse_example(records, {{"x", feature}});
                }),
                HasSubstr(text));
  };
  fails(FixedLenSequenceFeature({2}, int64), "needs allow_missing");
  fails(FixedLenSequenceFeature({3}, int64, {.allow_missing = true}), "no rows of shape [3]");
  fails(FixedLenSequenceFeature({0}, int64, {.allow_missing = true}), "have no values");
  fails(FixedLenSequenceFeature({}, int64,
                                {.allow_missing = true, .default_value = at::scalar_tensor(1.f)}),
        "no scalar of its dtype");
}

struct RaggedExampleFiles : data::FilesTest {};

TEST_F(RaggedExampleFiles, InMakeBatchedFeaturesDataset) {
  std::vector<std::string> records;
  for (int i = 0; i < 6; ++i) {
    records.push_back(ExampleBuilder()
                          .add_ints("ids", std::vector<int64_t>(static_cast<size_t>(i), i))
                          .add_ints("at", {i})
                          .add_floats("v", {1})
                          .serialize());
  }
  const std::string path = write_records("a", records);
  const auto make = [&] {
    return data::experimental::make_batched_features_dataset(
        path, 2, {{"ids", RaggedFeature(int64)}, {"s", SparseFeature("at", "v", float32, 6)}},
        {.num_epochs = 1, .shuffle_seed = 3});
  };
  int64_t sum = 0, values = 0;
  for (const Structure& batch : make()) {
    EXPECT_EQ(make().element_spec().first_mismatch(batch), std::nullopt);
    sum += RaggedTensor(batch["ids"]).values().sum().item<int64_t>();
    values += SparseTensor(batch["s"]).values().size(0);
  }
  EXPECT_EQ(sum, 1 + 4 + 9 + 16 + 25);
  EXPECT_EQ(values, 6);
  data::expect_resumable(make);
}

}  // namespace
}  // namespace cohort::io
