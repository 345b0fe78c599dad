// Shuffles of records of files, which those who want blocks get as columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "cohort/data/files/csv_dataset.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::HasSubstr;

// The parameter is how many files give records in turn.
struct ShuffledRecords : FilesTest, testing::WithParamInterface<int> {
  // 200 rows of all types in two files, of which each of `bad` has no number.
  Dataset rows(const std::vector<int>& bad = {}) const {
    std::vector<std::string> files;
    for (int file = 0; file < 2; ++file) {
      std::string content;
      for (int i = 100 * file; i < 100 * (file + 1); ++i) {
        const bool is_bad = std::find(bad.begin(), bad.end(), i) != bad.end();
        content += internal::str(is_bad ? "x" : "", i, ",", i * 3'000'000'000, ",", i, ".5,", i,
                                 ".25,\"text, ", i, "\"\n");
      }
      files.push_back(write(internal::str("f", file), content));
    }
    return CsvDataset(files,
                      {CsvColumn::int32s(), CsvColumn::ints(), CsvColumn::floats(),
                       CsvColumn::doubles(), CsvColumn::strings()},
                      {.column_names = {"a", "b", "c", "d", "e"},
                       .files = {.buffer_size = 300, .num_parallel_reads = GetParam()}});
  }
};

INSTANTIATE_TEST_SUITE_P(Files, ShuffledRecords, testing::Values(1, 2, 3));

// The same, one by one.
Dataset one_by_one(const Dataset& dataset) { return sequential(dataset); }

TEST_P(ShuffledRecords, ComeInTheOrderOfElements) {
  for (const int64_t buffer : {1, 63, 70, 199, 200, 1000}) {
    const ShuffleOptions seed = {.seed = 3};
    const auto shuffled = rows().shuffle(buffer, seed);
    const auto expected = texts(one_by_one(rows()).shuffle(buffer, seed).batch(7));
    EXPECT_EQ(texts(shuffled.batch(7)), expected) << buffer;
    EXPECT_EQ(texts(shuffled.repeat(2).batch(7)),
              texts(one_by_one(rows()).shuffle(buffer, seed).repeat(2).batch(7)))
        << buffer;
    EXPECT_EQ(texts(shuffled), texts(shuffled.batch(9).unbatch())) << buffer;
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(texts(shuffled.batch(kAll).unbatch()), texts(rows().shuffle(buffer, seed))) << buffer;
  }
}

TEST_P(ShuffledRecords, AFailedRecordCostsWhatItCostsAlone) {
  for (const std::vector<int>& bad :
       {std::vector<int>{0}, {5, 6, 7}, {99, 100}, {199}, {3, 50, 51, 120, 198}}) {
    for (const int64_t buffer : {1, 8, 150, 1000}) {
      const ShuffleOptions seed = {.seed = 5};
      const auto iterate = [&](const Dataset& dataset) {
        std::vector<std::string> all = outcomes(dataset);
        // The element's index stands in front of what a filter throws.
        for (std::string& text : all) {
          if (text.find("is no int32") != std::string::npos) text = text.substr(text.find("field"));
        }
        return all;
      };
      EXPECT_EQ(iterate(rows(bad).shuffle(buffer, seed).batch(4)),
                iterate(one_by_one(rows(bad)).shuffle(buffer, seed).batch(4)))
          << buffer;
      EXPECT_EQ(iterate(rows(bad).ignore_errors().shuffle(buffer, seed).batch(4)),
                iterate(one_by_one(rows(bad).ignore_errors()).shuffle(buffer, seed).batch(4)))
          << buffer;
    }
  }
}

TEST_P(ShuffledRecords, RunsEndBeforeARecordThatFails) {
  const bool in_turn = GetParam() > 1;
  const Dataset dataset = in_turn ? rows({1, 102}) : rows({2, 3});
  const auto iterator = dataset.node()->make_iterator({});
  ASSERT_TRUE(iterator->has_runs());
  const auto run = [&](int64_t most) {
    Structure block;
    try {
      EXPECT_GT(iterator->next_run(most, block), 0);
      return internal::str(block["a"]);
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what()).substr(path("").size());
    }
  };
  std::vector<std::string> found;
  // Files are opened when their turn comes.
  if (in_turn) {
    EXPECT_EQ(run(9), "[0]");
    EXPECT_EQ(run(9), "[100]");
  }
  for (int i = 0; i < (in_turn ? 3 : 4); ++i) found.push_back(run(i < 3 ? 9 : 2));
  if (in_turn) {
    EXPECT_THAT(found, testing::ElementsAre(
                           HasSubstr("f0', line 2: field 1 ('a') is no int32: 'x1'"), "[101, 2]",
                           HasSubstr("f1', line 3: field 1 ('a') is no int32: 'x102'")));
    EXPECT_EQ(run(2), "[3, 103]");
  } else {
    EXPECT_THAT(found, testing::ElementsAre(
                           "[0, 1]", HasSubstr("f0', line 3: field 1 ('a') is no int32: 'x2'"),
                           HasSubstr("f0', line 4: field 1 ('a') is no int32: 'x3'"), "[4, 5]"));
  }
}

TEST_P(ShuffledRecords, ResumeAtEveryPosition) {
  for (const int64_t buffer : {5, 70, 1000}) {
    for (const bool ignored : {false, true}) {
      const Dataset records = ignored ? rows({7, 30, 31, 150}).ignore_errors() : rows();
      const auto make = [&] { return records.shuffle(buffer, {.seed = 2}).repeat(2).batch(30); };
      const auto all = texts(make());
      const Dataset dataset = make();
      auto iterator = dataset.iterator();
      for (size_t position = 0; position <= all.size(); ++position) {
        auto restored = dataset.iterator();
        restored.restore(IteratorState::parse(iterator.state().serialize()));
        EXPECT_EQ(texts(restored), std::vector<std::string>(all.begin() + position, all.end()));
        iterator.next();
      }
    }
  }
}

TEST_P(ShuffledRecords, PassOverElementsAndMixWaysToRead) {
  const Dataset shuffled = rows().shuffle(40, {.seed = 2});
  const auto all = texts(shuffled);
  for (const int64_t skipped : {1, 7, 150, 200, 300}) {
    const auto from = all.begin() + std::min<int64_t>(skipped, 200);
    EXPECT_EQ(texts(shuffled.skip(skipped)), std::vector<std::string>(from, all.end()));
    EXPECT_EQ(texts(shuffled.skip(skipped).batch(3).unbatch()),
              std::vector<std::string>(from, all.end()));
  }
  for (const bool block_first : {false, true}) {
    const auto iterator = shuffled.node()->make_iterator({});
    std::vector<std::string> found;
    Structure out;
    for (bool block = block_first; found.size() < 200; block = !block) {
      const int64_t rows = block ? iterator->next_block(3, out) : (iterator->next(out) ? 1 : 0);
      ASSERT_GT(rows, 0);
      const auto some =
          block ? texts(Dataset::from_tensor_slices(out)) : std::vector{internal::str(out)};
      found.insert(found.end(), some.begin(), some.end());
    }
    EXPECT_EQ(found, all);
  }
}

// Large strings stay where they were read.
TEST_P(ShuffledRecords, OfAnySize) {
  std::vector<std::string> records;
  for (size_t i = 0; i < 60; ++i)
    records.push_back(std::string(i * 1000, static_cast<char>('a' + i % 26)));
  const auto file = write_records("a", records);
  const Dataset dataset =
      TFRecordDataset({file, file}, {.num_parallel_reads = GetParam()}).shuffle(10, {.seed = 1});
  const auto batched = texts(dataset.batch(8).unbatch());
  EXPECT_EQ(batched,
            texts(sequential(TFRecordDataset({file, file}, {.num_parallel_reads = GetParam()}))
                      .shuffle(10, {.seed = 1})));
  EXPECT_EQ(batched.size(), 2 * records.size());
}

}  // namespace
}  // namespace cohort::data
