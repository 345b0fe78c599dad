#include "cohort/data/files/make_batched_features_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using experimental::make_batched_features_dataset;
using experimental::MakeBatchedFeaturesDatasetOptions;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

struct MakeBatchedFeatures : FilesTest {
  MakeBatchedFeatures() {
    for (int file = 0; file < 2; ++file) {
      std::vector<std::string> records;
      for (int i = 0; i < 5; ++i) records.push_back(example(5 * file + i));
      write_records(internal::str(file, ".tfrecord"), records);
    }
  }
  static std::string example(int n) {
    return io::ExampleBuilder()
        .add_ints("n", {n})
        .add_floats("x", {static_cast<float>(n) / 2})
        .add_bytes("tags", std::vector<std::string_view>(static_cast<size_t>(n % 3), "t"))
        .serialize();
  }
  Dataset make(int64_t batch_size, const MakeBatchedFeaturesDatasetOptions& options,
               const io::ExampleFeatures& features = {{"n", io::FixedLenFeature({}, int64)},
                                                      {"x", io::FixedLenFeature({}, float32)}}) {
    return make_batched_features_dataset(path("*.tfrecord"), batch_size, features, options);
  }
  static std::vector<int64_t> numbers(const Dataset& dataset) {
    return ints(dataset.map([](const Structure& batch) { return batch["n"]; }));
  }
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
};

TEST_F(MakeBatchedFeatures, GivesParsedBatches) {
  EXPECT_THAT(texts(make(4, {.num_epochs = 1, .shuffle = false})),
              ElementsAre("{'n': [0, 1, 2, 3], 'x': [0.0, 0.5, 1.0, 1.5]}",
                          "{'n': [4, 5, 6, 7], 'x': [2.0, 2.5, 3.0, 3.5]}",
                          "{'n': [8, 9], 'x': [4.0, 4.5]}"));
  EXPECT_THAT(
      texts(
          make(6, {.label_key = "x", .num_epochs = 1, .shuffle = false, .drop_final_batch = true})),
      ElementsAre("({'n': [0, 1, 2, 3, 4, 5]}, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5])"));
  EXPECT_THAT(
      texts(make(3, {.num_epochs = 1, .shuffle = false}, {{"tags", io::VarLenFeature::strings()}})
                .take(1)),
      ElementsAre("{'tags': {'values': [[\"\", \"\"], [\"t\", \"\"], [\"t\", \"t\"]], "
                  "'lengths': [0, 1, 2]}}"));
  for (const MakeBatchedFeaturesDatasetOptions& options :
       {MakeBatchedFeaturesDatasetOptions{.label_key = "x"},
        MakeBatchedFeaturesDatasetOptions{.num_epochs = 1}}) {
    const Dataset dataset = make(4, options);
    for (const Structure& batch : dataset.take(3)) {
      EXPECT_FALSE(dataset.element_spec().first_mismatch(batch)) << batch;
    }
  }
}

TEST_F(MakeBatchedFeatures, ShufflesRepeatsAndTakesTurns) {
  const auto two = numbers(make(5, {.num_epochs = 2, .shuffle_seed = 3}));
  ASSERT_EQ(two.size(), 20u);
  const std::vector<int64_t> first(two.begin(), two.begin() + 10);
  EXPECT_THAT(first, UnorderedElementsAreArray(all));
  EXPECT_NE(first, all);
  EXPECT_EQ(numbers(make(5, {.num_epochs = 2, .shuffle_seed = 3})), two);
  EXPECT_EQ(make(5, {}).cardinality(), kInfiniteCardinality);
  const auto in_turn = ElementsAre(0, 5, 1, 6, 2, 7, 3, 8, 4, 9);
  EXPECT_THAT(numbers(make(3, {.num_epochs = 1, .shuffle = false, .reader_num_threads = 2})),
              in_turn);
  EXPECT_THAT(
      numbers(make(
          3,
          {.num_epochs = 1, .shuffle = false, .reader_num_threads = 2, .sloppy_ordering = true})),
      UnorderedElementsAreArray(all));
}

TEST_F(MakeBatchedFeatures, TakesAReader) {
  const auto reader = [](const std::string& file) { return TFRecordDataset(file).take(2); };
  EXPECT_THAT(numbers(make(4, {.reader = reader, .num_epochs = 1, .shuffle = false})),
              ElementsAre(0, 1, 5, 6));
  write_records("a.gz", {example(7)}, "GZIP");
  const Dataset compressed =
      make_batched_features_dataset(path("a.gz"), 1, {{"n", io::FixedLenFeature({}, int64)}},
                                    {.reader_args = {.compression_type = "GZIP"}, .num_epochs = 1});
  EXPECT_THAT(texts(compressed), ElementsAre("{'n': [7]}"));
}

TEST_F(MakeBatchedFeatures, ResumesAndIsDivided) {
  const MakeBatchedFeaturesDatasetOptions options = {
      .num_epochs = 2, .shuffle_buffer_size = 4, .shuffle_seed = 3};
  const auto expected = texts(make(3, options));
  const Dataset dataset = make(3, options);
  auto iterator = dataset.iterator();
  for (size_t position = 0; position <= expected.size(); ++position) {
    auto restored = dataset.iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    EXPECT_EQ(texts(restored),
              std::vector<std::string>(expected.begin() + position, expected.end()));
    iterator.next();
  }
  for (const AutoShardPolicy policy : {AutoShardPolicy::FILE, AutoShardPolicy::DATA}) {
    Options sharding;
    sharding.experimental_distribute.auto_shard_policy = policy;
    std::vector<int64_t> found;
    for (int64_t worker = 0; worker < 2; ++worker) {
      const auto part =
          numbers(auto_shard(make(5, {.num_epochs = 1, .shuffle_seed = 1}).with_options(sharding),
                             {.num_workers = 2, .index = worker}));
      found.insert(found.end(), part.begin(), part.end());
    }
    EXPECT_THAT(found, UnorderedElementsAreArray(all));
  }
  EXPECT_THAT(dataset.explain(), AllOf(HasSubstr("map(num_parallel_calls=2)"),
                                       HasSubstr("TFRecordDataset"), HasSubstr("list_files")));
}

TEST_F(MakeBatchedFeatures, ChecksItsOptions) {
  const auto error = [&](const MakeBatchedFeaturesDatasetOptions& options, int64_t batch_size = 2) {
    return thrown<InvalidArgumentError>([&] { make(batch_size, options); });
  };
  EXPECT_THAT(error({.label_key = "y"}),
              HasSubstr("make_batched_features_dataset: label_key is 'y', which is no feature"));
  EXPECT_THAT(error({}, 0), HasSubstr("batch_size"));
  EXPECT_THAT(error({.reader_num_threads = 0}), HasSubstr("num_parallel_reads"));
  EXPECT_THAT(error({.parser_num_threads = 0}), HasSubstr("num_parallel_calls"));
  EXPECT_THROW(make(2, {}, {{"n", io::FixedLenFeature({}, float64)}}), InvalidArgumentError);
  EXPECT_THROW(make_batched_features_dataset(path("*.none"), 2, {}), NotFoundError);
}

}  // namespace
}  // namespace cohort::data
