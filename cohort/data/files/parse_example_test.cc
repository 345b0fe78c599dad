#include "cohort/data/files/parse_example.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const ExampleFeatures kFeatures = {
    {"id", FixedLenFeature({}, int64)},
    {"box", FixedLenFeature({2, 2}, float32)},
    {"name", FixedLenFeature::strings()},
    {"tags", VarLenFeature::strings()},
    {"scores", VarLenFeature(float32)},
    {"ids", VarLenFeature(int64)},
    {"weight", FixedLenFeature({}, float32, at::tensor(0.5f).select(0, 0))},
    {"words", FixedLenFeature::strings({2}, StringTensor({"x", "yz"}))},
};

std::string example(int64_t id, const std::vector<int64_t>& ids) {
  return ExampleBuilder()
      .add_ints("id", {id})
      .add_floats("box", {1, 2, 3, static_cast<float>(id)})
      .add_bytes("name", {internal::str("n", id)})
      .add_bytes("tags", {"t", internal::str("u", id)})
      .add_ints("ids", ids)
      .add_bytes("other", {"passed over"})
      .serialize();
}

TEST(ParseExample, OneRecord) {
  const Structure parsed = parse_example(StringTensor::scalar(example(7, {1, -2, 3})), kFeatures);
  EXPECT_EQ(internal::str(parsed),
            "{'id': 7, 'box': [[1.0, 2.0], [3.0, 7.0]], 'name': \"n7\", 'tags': {'values': [\"t\", "
            "\"u7\"], 'lengths': 2}, 'scores': {'values': [], 'lengths': 0}, 'ids': "
            "{'values': [1, "
            "-2, 3], 'lengths': 3}, 'weight': 0.5, 'words': [\"x\", \"yz\"]}");
  EXPECT_EQ(example_spec(kFeatures, false).first_mismatch(parsed), std::nullopt);
}

TEST(ParseExample, ABatchIsPadded) {
  const Structure parsed =
      parse_example(StringTensor({example(7, {1, -2, 3}), example(8, {})}), kFeatures);
  EXPECT_EQ(example_spec(kFeatures, true).first_mismatch(parsed), std::nullopt);
  EXPECT_EQ(internal::str(parsed["ids"]), "{'values': [[1, -2, 3], [0, 0, 0]], 'lengths': [3, 0]}");
  EXPECT_EQ(internal::str(parsed["id"]), "[7, 8]");
  EXPECT_EQ(internal::str(parsed["box"]), "[[[1.0, 2.0], [3.0, 7.0]], [[1.0, 2.0], [3.0, 8.0]]]");
  EXPECT_EQ(internal::str(parsed["name"]), "[\"n7\", \"n8\"]");
  EXPECT_EQ(internal::str(parsed["words"]), "[[\"x\", \"yz\"], [\"x\", \"yz\"]]");
  EXPECT_THAT(parsed["scores"]["values"].tensor().sizes(), ElementsAre(2, 0));
  const Structure none = parse_example(StringTensor(), kFeatures);
  EXPECT_EQ(example_spec(kFeatures, true).first_mismatch(none), std::nullopt);
}

TEST(ParseExample, LargeStringsAreNotCopied) {
  const std::string large(10'000, 'x');
  const StringTensor records({ExampleBuilder().add_bytes("image", {large}).serialize()});
  const Structure parsed = parse_example(records, {{"image", FixedLenFeature::strings()}});
  const std::string_view value = parsed["image"].strings()[0];
  EXPECT_EQ(value, large);
  EXPECT_TRUE(value.data() > records[0].data() && value.data() < records[0].data() + 100);
}

TEST(ParseExample, SaysWhatDoesNotFit) {
  const StringTensor records({example(1, {}), example(2, {})});
  const auto error = [&](const ExampleFeature& feature, const std::string& name) {
    return thrown<InvalidArgumentError>([&] { parse_example(records, {{name, feature}}); });
  };
  EXPECT_THAT(error(FixedLenFeature({}, int64), "none"),
              HasSubstr("parse_example: record 0: feature 'none': is missing"));
  EXPECT_THAT(error(FixedLenFeature({}, float32), "id"),
              HasSubstr("feature 'id': has int64 values where float values are expected"));
  EXPECT_THAT(error(VarLenFeature::strings(), "id"), HasSubstr("where bytes values are expected"));
  EXPECT_THAT(error(FixedLenFeature({3}, float32), "box"),
              HasSubstr("has 4 values where the shape [3] needs 3"));
  EXPECT_THAT(error(FixedLenFeature::strings(), "tags"), HasSubstr("has 2 values"));
  EXPECT_THAT(error(FixedLenFeature({}, float64), "id"), HasSubstr("has the dtype float64"));
  EXPECT_THAT(error(FixedLenFeature({2}, int64, at::tensor({int64_t{1}})), "id"),
              HasSubstr("default value of another dtype or shape"));
  EXPECT_THAT(error(FixedLenFeature({-1}, int64), "id"), HasSubstr("cannot have the shape [-1]"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        parse_example(records, {{"id", VarLenFeature(int64)}, {"id", VarLenFeature(int64)}});
      }),
      HasSubstr("'id' is asked for twice"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                parse_example(records.reshape({2, 1}), kFeatures);
              }),
              HasSubstr("shape [2,1]"));
  EXPECT_THAT(
      thrown<DataLossError>([&] {
        parse_example(StringTensor({example(1, {}), "text"}), {{"id", VarLenFeature(int64)}});
      }),
      HasSubstr("parse_example: record 1: tf.Example"));
}

TEST(ParseExample, PaddingHasALimit) {
  std::vector<std::string> records(2000, example(1, {}));
  records[7] = example(2, std::vector<int64_t>(100'000, 1));
  EXPECT_THAT(thrown<ResourceExhaustedError>([&] {
                parse_example(StringTensor(records), {{"ids", VarLenFeature(int64)}});
              }),
              AllOf(HasSubstr("'ids'"), HasSubstr("100000 values in a batch of 2000")));
}

struct ParseExampleOfFiles : data::FilesTest {};

TEST_F(ParseExampleOfFiles, InAPipeline) {
  std::vector<std::string> records;
  for (int i = 0; i < 10; ++i) records.push_back(example(i, std::vector<int64_t>(i % 3, i)));
  const auto dataset = data::TFRecordDataset(write_records("a", records))
                           .shuffle(10, {.seed = 1})
                           .batch(4)
                           .map([](const StringTensor& batch) {
                             return parse_example(batch, {{"id", FixedLenFeature({}, int64)}});
                           });
  int64_t total = 0;
  for (const Structure& batch : dataset) total += batch["id"].tensor().sum().item<int64_t>();
  EXPECT_EQ(total, 45);
}

}  // namespace
}  // namespace cohort::io
