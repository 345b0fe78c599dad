#include "cohort/data/files/parse_sequence_example.h"

#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::io {
namespace {

using internal::str;
using testing::HasSubstr;

std::string sentence(int64_t label, const std::vector<std::vector<int64_t>>& words) {
  SequenceExampleBuilder example;
  example.context().add_ints("label", {label}).add_bytes("title", {str("t", label)});
  example.add_list("letters");
  for (const auto& word : words) {
    example.add_step_ints("letters", word);
    example.add_step_floats("x", {static_cast<float>(word.size()), 0.5});
  }
  return example.serialize();
}

const ExampleFeatures kContext = {{"label", FixedLenFeature({}, int64)},
                                  {"title", RaggedFeature::strings()}};
const ExampleFeatures kSequences = {
    {"x", FixedLenSequenceFeature({2}, float32, {.allow_missing = true})},
    {"letters", VarLenFeature(int64)},
    {"ragged", RaggedFeature(int64, {.value_key = "letters"})}};

TEST(ParseSequenceExample, ABatchIsFilledUp) {
  const StringTensor records({sentence(1, {{7}, {8, 9}}), sentence(2, {}), sentence(3, {{5}})});
  const Structure parsed = parse_sequence_example(records, kContext, kSequences);
  EXPECT_EQ(str(parsed[0]),
            "{'label': [1, 2, 3], 'title': <RaggedTensor [[\"t1\"], [\"t2\"], [\"t3\"]]>}");
  EXPECT_EQ(str(parsed[1]["x"]),
            "[[[1.0, 0.5], [2.0, 0.5]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.5], [0.0, 0.0]]]");
  EXPECT_EQ(str(parsed[1]["letters"]),
            "{'values': [[[7, 0], [8, 9]], [[0, 0], [0, 0]], [[5, 0], [0, 0]]], "
            "'lengths': [[1, 2], [0, 0], [1, 0]]}");
  EXPECT_EQ(str(parsed[1]["ragged"]), "<RaggedTensor [[[7], [8, 9]], [], [[5]]]>");
  EXPECT_EQ(str(parsed[2]), "{'x': [2, 0, 1], 'letters': [2, 0, 1]}");
  EXPECT_EQ(sequence_example_spec(kContext, kSequences, true).first_mismatch(parsed), std::nullopt);
  const Structure none = parse_sequence_example(StringTensor(), kContext, kSequences);
  EXPECT_EQ(sequence_example_spec(kContext, kSequences, true).first_mismatch(none), std::nullopt);
}

TEST(ParseSequenceExample, OneRecord) {
  const Structure parsed = parse_single_sequence_example(
      StringTensor::scalar(sentence(1, {{7}, {}, {8, 9}})), kContext, kSequences);
  EXPECT_EQ(str(parsed),
            "({'label': 1, 'title': [\"t1\"]}, {'x': [[1.0, 0.5], [0.0, 0.5], [2.0, 0.5]], "
            "'letters': {'values': [[7, 0], [0, 0], [8, 9]], 'lengths': [1, 0, 2]}, "
            "'ragged': <RaggedTensor [[7], [], [8, 9]]>})");
  EXPECT_EQ(sequence_example_spec(kContext, kSequences, false).first_mismatch(parsed),
            std::nullopt);
}

TEST(ParseSequenceExample, PartitionsDivideTheValuesOfAStep) {
  SequenceExampleBuilder first, second;
  first.add_step_ints("v", {1, 2, 3}).add_step_ints("v", {4});
  first.add_step_ints("rows", {2, 1}).add_step_ints("rows", {0, 1});
  second.add_step_ints("v", {}).add_step_ints("rows", {});
  const ExampleFeatures features = {
      {"v", RaggedFeature(int64, {.partitions = {RaggedFeature::RowLengths{"rows"}}})}};
  const StringTensor records({first.serialize(), second.serialize()});
  const Structure parsed = parse_sequence_example(records, {}, features);
  EXPECT_EQ(str(parsed[1]["v"]), "<RaggedTensor [[[[1, 2], [3]], [[], [4]]], [[]]]>");
  EXPECT_EQ(sequence_example_spec({}, features, true).first_mismatch(parsed), std::nullopt);
  second.add_step_ints("rows", {});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        parse_sequence_example(StringTensor({first.serialize(), second.serialize()}), {}, features);
      }),
      HasSubstr("feature 'v': has 1 steps of values in record 1, but 2 of 'rows'"));
}

TEST(ParseSequenceExample, MissingListsAndDefaults) {
  SequenceExampleBuilder full;
  full.add_step_bytes("w", {"a"}).add_step_bytes("w", {"b"});
  const StringTensor records({full.serialize(), SequenceExampleBuilder().serialize()});
  const Structure parsed = parse_sequence_example(
      records, {},
      {{"w", FixedLenSequenceFeature::strings(
                 {}, {.allow_missing = true, .default_value = StringTensor::scalar("-")})},
       {"other", VarLenFeature(float32)}});
  EXPECT_EQ(str(parsed[1]["w"]), R"([["a", "b"], ["-", "-"]])");
  EXPECT_EQ(str(parsed[2]), "{'w': [2, 0], 'other': [0, 0]}");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                parse_sequence_example(records, {}, {{"w", FixedLenSequenceFeature::strings()}});
              }),
              HasSubstr("record 1: feature 'w': its list is missing, and allow_missing is false"));
}

TEST(ParseSequenceExample, SaysWhatDoesNotFit) {
  const StringTensor records({sentence(1, {{7}, {8, 9}})});
  const auto fails = [&](const ExampleFeatures& context, const ExampleFeatures& sequences,
                         const char* text) {
    EXPECT_THAT(
        thrown<InvalidArgumentError>([&] { parse_sequence_example(records, context, sequences); }),
        HasSubstr(text));
  };
  fails({}, {}, "neither context_features nor sequence_features");
  fails({{"a", SparseFeature("i", "v", int64, 3)}}, {}, "context_features are FixedLenFeature");
  fails({}, {{"x", FixedLenFeature({}, int64)}}, "sequence_features are FixedLenSequenceFeature");
  fails({}, {{"letters", FixedLenSequenceFeature({}, int64)}},
        "feature 'letters': has 2 values where the shape [] needs 1");
  fails({}, {{"x", VarLenFeature(int64)}}, "feature 'x': has float values");
  fails({}, {{"x", VarLenFeature(float64)}}, "has the dtype float64");
  fails({{"letters", FixedLenFeature({}, int64)}}, {}, "feature 'letters': is missing");
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { parse_single_sequence_example(records, kContext, kSequences); }),
              HasSubstr("takes one record, shape [], but got shape [1]"));
  EXPECT_THAT(thrown<DataLossError>([&] {
                parse_sequence_example(StringTensor({records[0], "text"}), kContext, kSequences);
              }),
              HasSubstr("parse_sequence_example: record 1: "));
  // One long sequence among many: what they would take filled up is refused, before it is taken.
  std::vector<std::string> many(2000, sentence(1, {}));
  many[7] = sentence(2, std::vector<std::vector<int64_t>>(100'000, {1}));
  EXPECT_THAT(thrown<ResourceExhaustedError>([&] {
                parse_sequence_example(StringTensor(many), {}, {{"letters", VarLenFeature(int64)}});
              }),
              HasSubstr("'letters': has up to 100000 rows in a batch of 2000"));
}

struct SequenceExampleFiles : data::FilesTest {};

TEST_F(SequenceExampleFiles, InAPipeline) {
  std::vector<std::string> records;
  for (int64_t i = 0; i < 7; ++i) {
    records.push_back(sentence(i, std::vector<std::vector<int64_t>>(static_cast<size_t>(i), {i})));
  }
  const std::string path = write_records("a", records);
  const auto make = [&] {
    return data::TFRecordDataset(path)
        .shuffle(4, {.seed = 1})
        .batch(3)
        .map(
            [](const StringTensor& batch) {
              return parse_sequence_example(batch, kContext, kSequences);
            },
            {.output_spec = sequence_example_spec(kContext, kSequences, true)});
  };
  int64_t steps = 0;
  for (const Structure& batch : make()) steps += batch[2]["x"].tensor().sum().item<int64_t>();
  EXPECT_EQ(steps, 21);
  data::expect_resumable(make);
}

}  // namespace
}  // namespace cohort::io
