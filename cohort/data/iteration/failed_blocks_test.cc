// Elements that fail in pipelines that read blocks: a batch fails with each, and all others are
// those that would have come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <functional>

#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kFiles = 4, kInEach = 6;

std::vector<std::string> results(DatasetIterator& iterator) {
  std::vector<std::string> all;
  while (true) {
    try {
      const auto element = iterator.next();
      if (!element) return all;
      all.push_back(internal::str(*element));
    } catch (const Error&) {
      all.emplace_back("failed");
    }
  }
}
std::vector<std::string> results(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return results(iterator);
}

struct FailedBlocks : FilesTest {
  FailedBlocks() {
    std::vector<std::string> names;
    for (int file = 0; file < kFiles; ++file) {
      std::vector<std::string> records;
      for (int i = 0; i < kInEach; ++i) records.push_back(std::to_string(file * kInEach + i));
      names.push_back(write_records(std::to_string(file), records));
    }
    records = TFRecordDataset(Paths(names));
  }
  // The records as numbers, but for those that are `bad`.
  Dataset numbers(std::vector<int64_t> bad, MapOptions options = {}) const {
    return records->map(
        [bad = std::move(bad)](std::string_view text) {
          int64_t value = 0;
          std::from_chars(text.data(), text.data() + text.size(), value);
          if (std::find(bad.begin(), bad.end(), value) != bad.end()) {
            throw InvalidArgumentError("a bad record");
          }
          return value;
        },
        options);
  }

  std::optional<Dataset> records;
};

// Blocks end with their files, and begin anew behind an error.
TEST_F(FailedBlocks, TakeTheirBatchAndNoOther) {
  using Above = std::function<Dataset(const Dataset&)>;
  const std::vector<Above> above = {
      [](const Dataset& d) { return d.batch(4); },
      [](const Dataset& d) { return d.batch(5); },
      [](const Dataset& d) { return d.batch(7, {.drop_remainder = true}); },
      [](const Dataset& d) { return d.take(20).batch(4); },
      [](const Dataset& d) { return d.skip(3).batch(4); },
      [](const Dataset& d) { return d.enumerate().batch(4); },
      [](const Dataset& d) { return d.repeat(2).batch(5); },
      [](const Dataset& d) { return in_blocks(Dataset::range(100, 110)).concatenate(d).batch(4); },
      [](const Dataset& d) { return d.shard(2, 1).batch(3); },
      [](const Dataset& d) { return d.batch(4).unbatch().batch(3); },
      [](const Dataset& d) { return d.map([](int64_t x) { return -x; }).batch(4); },
      [](const Dataset& d) { return d.prefetch(3).batch(4); },
  };
  for (const std::vector<int64_t>& bad :
       {std::vector<int64_t>{0}, {5}, {6}, {9}, {9, 10}, {5, 6}, {23}, {3, 9, 15, 21}}) {
    const Dataset expected = sequential(numbers(bad));
    for (size_t i = 0; i < above.size(); ++i) {
      const std::vector<std::string> wanted = results(above[i](expected));
      for (const std::optional<int64_t> calls : {std::optional<int64_t>(), {2}, {5}, {AUTOTUNE}}) {
        EXPECT_EQ(results(above[i](numbers(bad, {.num_parallel_calls = calls}))), wanted)
            << "pipeline " << i << ", " << bad[0] << " fails, calls: " << calls.value_or(0);
      }
    }
  }
}

TEST_F(FailedBlocks, OfAVectorizedMapFailWhole) {
  const auto fail_at_5 = [](const Tensor& block) {
    if (block.eq(5).any().item<bool>()) throw InvalidArgumentError("a bad block");
    return block;
  };
  for (const std::optional<int64_t> calls : {std::optional<int64_t>(), {3}}) {
    const Dataset mapped =
        numbers({}).map(fail_at_5, {.num_parallel_calls = calls, .vectorized = true});
    EXPECT_EQ(results(mapped.batch(8)), results(sequential(mapped).batch(8)));
  }
}

TEST_F(FailedBlocks, ResumeAtEveryPlace) {
  for (const std::optional<int64_t> calls : {std::optional<int64_t>(), {3}}) {
    const Dataset mapped = numbers({5, 9, 14}, {.num_parallel_calls = calls});
    for (const Dataset& dataset :
         {mapped, mapped.batch(4), mapped.cache().batch(4), mapped.shuffle(6, {.seed = 30}),
          mapped.shuffle(6, {.seed = 3}).batch(4), mapped.enumerate().batch(5),
          mapped.batch(4).unbatch().batch(3), mapped.filter([](int64_t x) { return x % 3 > 0; })}) {
      const size_t size = results(dataset).size();
      for (size_t place = 0; place <= size; ++place) {
        auto iterator = dataset.iterator();
        for (size_t i = 0; i < place; ++i) {
          try {
            iterator.next();
          } catch (const Error&) {
          }
        }
        auto restored = dataset.iterator();
        restored.restore(IteratorState::parse(iterator.state().serialize()));
        EXPECT_EQ(results(restored), results(iterator)) << place << "\n" << dataset.explain();
      }
    }
  }
}

// A block counts as a whole also where the data ends within it.
TEST_F(FailedBlocks, AtTheEndOfACacheResume) {
  const auto keep = [](int64_t x) {
    if (x == 3) throw InvalidArgumentError("a bad element");
    return x % 3 > 0;
  };
  const Dataset dataset = Dataset::range(4).filter(keep).cache().batch(4);
  auto iterator = dataset.iterator();
  EXPECT_THROW(iterator.next(), InvalidArgumentError);
  auto restored = dataset.iterator();
  restored.restore(iterator.state());
  EXPECT_EQ(results(restored), results(iterator));
}

// Of a batch whose rows are taken apart, too: it counts as one.
TEST_F(FailedBlocks, OfUnbatchAreOneElement) {
  const auto fail_at_5 = [](const Tensor& x) {
    if (x.item<int64_t>() == 5) throw InvalidArgumentError("a bad element");
    return x;
  };
  const Dataset rows = sequential(Dataset::range(20)).map(fail_at_5).batch(4).unbatch();
  EXPECT_EQ(results(rows.batch(3)), results(sequential(rows).batch(3)));
}

TEST_F(FailedBlocks, BehindTheEndOfAnotherDatasetAreNone) {
  const Dataset two = sequential(Dataset::range(2));
  const Dataset failing = numbers({2, 3, 4, 5, 6, 7});
  const auto sum = [](int64_t a, int64_t b) { return a + b; };
  for (const Dataset& zipped : {Dataset::zip({failing, two}), Dataset::zip({two, failing}),
                                Dataset::zip({failing, in_blocks(Dataset::range(2))})}) {
    EXPECT_EQ(results(zipped.map(sum)), (std::vector<std::string>{"0", "2"}));
    const auto iterator = zipped.node()->make_iterator({});
    EXPECT_EQ(iterator->skip(5), 2);
  }
}

}  // namespace
}  // namespace cohort::data
