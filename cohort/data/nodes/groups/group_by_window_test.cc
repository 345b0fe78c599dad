// group_by_window and bucket_by_sequence_length.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;

using Batch = std::vector<int64_t>;

// The values of each element.
std::vector<Batch> batches(const Dataset& dataset) {
  std::vector<Batch> all;
  for (const Structure& element : dataset) all.push_back(ints(Dataset::from_tensors(element)));
  return all;
}

Dataset by_remainder(const Dataset& input, int64_t divisor, int64_t size) {
  return input.group_by_window([=](int64_t x) { return x % divisor; },
                               [=](int64_t, const Dataset& window) { return window.batch(size); },
                               {.window_size = size});
}

TEST(GroupByWindow, FullWindowsFirstAndThenThoseOfTheLeastKeys) {
  for (const Dataset& ten : {Dataset::range(10), sequential(Dataset::range(10))}) {
    EXPECT_EQ(batches(by_remainder(ten, 2, 5)),
              (std::vector<Batch>{{0, 2, 4, 6, 8}, {1, 3, 5, 7, 9}}));
    EXPECT_EQ(batches(by_remainder(ten, 3, 2)),
              (std::vector<Batch>{{0, 3}, {1, 4}, {2, 5}, {6, 9}, {7}, {8}}));
  }
  EXPECT_TRUE(batches(by_remainder(Dataset::range(0), 2, 5)).empty());
}

TEST(GroupByWindow, ASizeForEachKeyAndAnyDatasetOfAWindow) {
  const Dataset grouped = Dataset::range(12).group_by_window(
      [](int64_t x) { return x % 2; },
      [](int64_t key, const Dataset& window) {
        return window.map([=](int64_t x) { return 100 * key + x; }).repeat(key + 1);
      },
      {.window_size_func = [](int64_t key) { return key + 2; }});
  EXPECT_THAT(ints(grouped), ElementsAre(0, 2, 101, 103, 105, 101, 103, 105, 4, 6, 8, 10, 107, 109,
                                         111, 107, 109, 111));
  EXPECT_EQ(grouped.cardinality(), kUnknownCardinality);
  EXPECT_EQ(by_remainder(Dataset::range(0), 2, 5).cardinality(), 0);
}

TEST(GroupByWindow, DescribesItself) {
  EXPECT_THAT(by_remainder(Dataset::range(9), 2, 5).explain(),
              HasSubstr("group_by_window(window_size=5): TensorSpec(shape=(None,), dtype=int64)"));
}

TEST(GroupByWindow, Errors) {
  const Dataset input = Dataset::range(8);
  const auto key = [](int64_t x) { return x % 2; };
  const auto batch = [](int64_t, const Dataset& window) { return window.batch(9); };
  expect_error<InvalidArgumentError>([&] { input.group_by_window(key, batch, {}); },
                                     "neither of window_size and window_size_func");
  expect_error<InvalidArgumentError>([&] { input.group_by_window(key, batch, {.window_size = 0}); },
                                     "window_size is 0");
  const auto sizes = outcomes(Dataset::range(2).group_by_window(
      key, batch, {.window_size_func = [](int64_t k) { return k; }}));
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_THAT(sizes[0], HasSubstr("element 0: the window size of key 0 is 0"));
  EXPECT_EQ(sizes[1], internal::str(Structure(at::ones({1}, at::kLong))));
}

// The element is lost, or the window; all else comes as it would have.
TEST(GroupByWindow, FunctionsThatFail) {
  const auto all = outcomes(Dataset::range(8).group_by_window(
      [](int64_t x) {
        if (x == 3) throw NotFoundError("no key");
        return x % 2;
      },
      [](int64_t, const Dataset& window) {
        if (ints(window)[0] == 4) throw NotFoundError("no window");
        return window.batch(2);
      },
      {.window_size = 2}));
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1], "NOT_FOUND: group_by_window: element 3: no key");
  EXPECT_EQ(
      all[3],
      "NOT_FOUND: group_by_window: the window of key 0 that begins with element 4: no window");
  EXPECT_THAT(all[4], HasSubstr("7"));
}

TEST(GroupByWindow, Resumes) {
  for (const bool in_order : {false, true}) {
    const Dataset input = Dataset::range(700).shuffle(30, {.seed = 1}).take(41);
    const Dataset ordered = in_order ? sequential(input) : input;
    expect_resumable([&] { return by_remainder(ordered, 3, 4); });
    expect_resumable([&] {
      return ordered
          .group_by_window(
              [](int64_t x) { return x % 5; },
              [](int64_t, const Dataset& window) { return window.shuffle(4, {.seed = 5}); },
              {.window_size_func = [](int64_t key) { return 2 * key + 1; }})
          .repeat(2);
    });
  }
}

// A key that hardly ever comes: its elements are read again alone, and the state does not grow.
TEST(GroupByWindow, StatesAreSmallAndRestoresShort) {
  int64_t reads = 0;
  const auto make = [&] {
    return sequential(Dataset::range(20'000))
        .map([&](const Tensor& x) {
          ++reads;
          return x;
        })
        .group_by_window([](int64_t x) { return x % 10'000 == 5 ? -1 : x % 4; },
                         [](int64_t, const Dataset& window) { return window.batch(50); },
                         {.window_size = 50});
  };
  auto iterator = make().iterator();
  for (int i = 0; i < 300; ++i) iterator.get_next();
  const std::string bytes = iterator.state().serialize();
  EXPECT_LT(bytes.size(), 2000u);
  reads = 0;
  auto restored = make().iterator();
  restored.restore(IteratorState::parse(bytes));
  EXPECT_LT(reads, 1500);  // four stretches at most
  EXPECT_EQ(texts(restored), texts(iterator));
}

// ---- buckets ------------------------------------------------------------------------------------

// TensorFlow's example.
Dataset sequences() {
  const std::vector<Batch> rows = {
      {0}, {1, 2, 3, 4}, {5, 6, 7}, {7, 8, 9, 10, 11}, {13, 14, 15, 16, 19, 20}, {21, 22}};
  std::vector<Structure> elements;
  for (const Batch& row : rows) elements.push_back(at::tensor(row));
  return Dataset::from_list(std::move(elements));
}
int64_t length(const Tensor& sequence) { return sequence.size(0); }

TEST(BucketBySequenceLength, PadsToTheLongestOfABatch) {
  const Dataset buckets = sequences().bucket_by_sequence_length(length, {3, 5}, {2, 2, 2});
  EXPECT_EQ(batches(buckets), (std::vector<Batch>{{1, 2, 3, 4, 5, 6, 7, 0},
                                                  {7, 8, 9, 10, 11, 0, 13, 14, 15, 16, 19, 20},
                                                  {0, 0, 21, 22}}));
  EXPECT_THAT(buckets.explain(),
              HasSubstr("bucket_by_sequence_length(bucket_boundaries=[3, 5], "
                        "bucket_batch_sizes=[2, 2, 2]): TensorSpec(shape=(None, None), "
                        "dtype=int64)"));
  EXPECT_EQ(batches(sequences().bucket_by_sequence_length(length, {3, 5}, {2, 4, 2},
                                                          {.drop_remainder = true}))
                .size(),
            2u);
}

TEST(BucketBySequenceLength, PadsToTheBoundaryOfTheBucket) {
  const Dataset buckets = sequences().bucket_by_sequence_length(
      length, {4, 7}, {2, 2, 1},
      {.padding_values = Structure(int64_t{-1}), .pad_to_bucket_boundary = true});
  EXPECT_EQ(batches(buckets), (std::vector<Batch>{{0, -1, -1, 5, 6, 7},
                                                  {1, 2, 3, 4, -1, -1, 7, 8, 9, 10, 11, -1},
                                                  {21, 22, -1},
                                                  {13, 14, 15, 16, 19, 20}}));
  const auto all = outcomes(
      sequences().bucket_by_sequence_length(length, {6}, {6, 1}, {.pad_to_bucket_boundary = true}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0], HasSubstr("bucket_by_sequence_length: element 4: the length is 6, but"));
}

TEST(BucketBySequenceLength, OfPairsWithPaddedShapes) {
  const Dataset pairs = Dataset::range(1, 7).map([](int64_t x) {
    return tuple(at::full({x, 2}, x, at::kLong), x);
  });
  const auto first_size = [](const Tensor& sequence, const Tensor&) { return sequence.size(0); };
  // What one element looks like says nothing of the others.
  expect_error<InvalidArgumentError>(
      [&] {
        pairs.bucket_by_sequence_length(first_size, {4, 8}, {2, 2, 2},
                                        {.pad_to_bucket_boundary = true});
      },
      "give padded_shapes");
  const Dataset buckets = pairs.bucket_by_sequence_length(
      first_size, {4, 8}, {3, 2, 2},
      {.padded_shapes = {{kUnknownDim, 2}, {}}, .pad_to_bucket_boundary = true});
  std::vector<std::vector<int64_t>> shapes;
  for (const Structure& batch : buckets) shapes.push_back(batch[0].tensor().sizes().vec());
  EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{{3, 3, 2}, {2, 7, 2}, {1, 7, 2}}));
}

TEST(BucketBySequenceLength, WithoutPadding) {
  const auto all = outcomes(
      sequences().bucket_by_sequence_length(length, {3, 5}, {1, 1, 2}, {.no_padding = true}));
  ASSERT_EQ(all.size(), 5u);  // two of different sizes cannot be one batch
  EXPECT_THAT(all[3], HasSubstr("INVALID_ARGUMENT: bucket_by_sequence_length: the window of key 2 "
                                "that begins with element 3"));
}

TEST(BucketBySequenceLength, Errors) {
  const auto fails = [](std::vector<int64_t> boundaries, std::vector<int64_t> sizes,
                        const char* text) {
    expect_error<InvalidArgumentError>(
        [&] { sequences().bucket_by_sequence_length(length, boundaries, sizes); }, text);
  };
  fails({3, 5}, {2, 2}, "there must be one size more");
  fails({5, 3}, {2, 2, 2}, "they must ascend");
  fails({3, 5}, {2, 0, 2}, "a batch size is 0");
  expect_error<InvalidArgumentError>(
      [] {
        sequences().bucket_by_sequence_length(length, {3}, {2, 2}, {.padded_shapes = {{2, 2}}});
      },
      "of another rank");
}

TEST(BucketBySequenceLength, Resumes) {
  expect_resumable([] {
    return Dataset::range(60)
        .shuffle(60, {.seed = 2})
        .map([](int64_t x) { return at::full({1 + x % 11}, x, at::kLong); })
        .bucket_by_sequence_length(length, {4, 8}, {4, 3, 2})
        .prefetch(1);
  });
}

}  // namespace
}  // namespace cohort::data
