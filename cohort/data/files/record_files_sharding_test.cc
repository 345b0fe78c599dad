// Record files that several workers share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/data/files/testing_record_files.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/sharding/auto_shard.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST_F(RecordFiles, AreDividedBetweenWorkers) {
  const auto files = write_files(std::vector<int>(10, 2));
  const auto part = [](const Dataset& dataset) {
    return strings(auto_shard(dataset.batch(2).unbatch(), {.num_workers = 5, .index = 3}));
  };
  EXPECT_THAT(part(TFRecordDataset(files)), ElementsAre("30", "31", "80", "81"));
  EXPECT_THAT(part(TFRecordDataset(files, {.num_parallel_reads = 2})),
              ElementsAre("30", "80", "31", "81"));
  // Names are shuffled after they are divided.
  EXPECT_THAT(part(TFRecordDataset(Dataset::list_files(path("f*")))),
              UnorderedElementsAre("30", "31", "80", "81"));
  EXPECT_THROW(part(TFRecordDataset(files[0])), InvalidArgumentError);
}

// The guides' pipelines: names of files, a reader for each.
TEST_F(RecordFiles, OfDatasetsInTurnAreDividedBetweenWorkers) {
  const auto files = write_files(std::vector<int>(4, 2));
  const auto part = [](const Dataset& dataset, AutoShardPolicy policy) {
    Options options;
    options.experimental_distribute.auto_shard_policy = policy;
    return strings(auto_shard(dataset.with_options(options), {.num_workers = 2, .index = 1}));
  };
  const Dataset names = Dataset::from_tensor_slices(StringTensor(files));
  const auto read = [](const StringTensor& name) {
    return TFRecordDataset(std::string(name.item()));
  };
  for (const AutoShardPolicy policy : {AutoShardPolicy::FILE, AutoShardPolicy::AUTO}) {
    EXPECT_THAT(part(names.flat_map(read), policy), ElementsAre("10", "11", "30", "31"));
    EXPECT_THAT(part(names.interleave(read, {.cycle_length = 2}), policy),
                ElementsAre("10", "30", "11", "31"));
    EXPECT_THAT(part(names.shuffle(4).interleave(read).batch(2).prefetch(1), policy),
                UnorderedElementsAre("10", "11", "30", "31"));
    // A reader below a function that reads no files.
    EXPECT_THAT(part(TFRecordDataset(files).flat_map(
                         [](const StringTensor& record) { return Dataset::from_tensors(record); }),
                     policy),
                ElementsAre("10", "11", "30", "31"));
  }
  const auto from_nowhere =
      names.flat_map([](const StringTensor& name) { return Dataset::from_tensors(name); });
  EXPECT_THROW(part(from_nowhere, AutoShardPolicy::FILE), NotFoundError);
}

// One file for all would hold whichever worker's elements came last.
TEST_F(RecordFiles, OfEachWorkerAreCachedInAFileOfItsOwn) {
  const auto files = write_files({2, 2});
  const auto part = [&](int64_t index) {
    return strings(auto_shard(TFRecordDataset(files).cache(path("cache")).batch(1),
                              {.num_workers = 2, .index = index}));
  };
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(part(0), ElementsAre("00", "01"));
    EXPECT_THAT(part(1), ElementsAre("10", "11"));
  }
  EXPECT_TRUE(std::filesystem::exists(path("cache-worker-1-of-2")));
}

}  // namespace
}  // namespace cohort::data
