#include "cohort/data/window.h"

#include <gmock/gmock.h>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using testing::ElementsAre;
using testing::IsEmpty;

using Windows = std::vector<std::vector<int64_t>>;

Windows windows_of(const WindowedDataset& dataset) {
  Windows all;
  for (const Dataset& window : dataset) all.push_back(ints(window));
  return all;
}

// A range that can be read at any position, and one that cannot.
std::vector<Dataset> ranges(int64_t stop) {
  const Dataset range = Dataset::range(stop);
  return {range, range.filter([](int64_t) { return true; })};
}

TEST(Window, OfTensorFlowsExamples) {
  for (const Dataset& seven : ranges(7)) {
    EXPECT_EQ(windows_of(seven.window(3)), (Windows{{0, 1, 2}, {3, 4, 5}, {6}}));
    EXPECT_EQ(windows_of(seven.window(3, {.drop_remainder = true})),
              (Windows{{0, 1, 2}, {3, 4, 5}}));
    EXPECT_EQ(windows_of(seven.window(3, {.shift = 2})),
              (Windows{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}, {6}}));
    EXPECT_EQ(windows_of(seven.window(3, {.shift = 1, .stride = 2, .drop_remainder = true})),
              (Windows{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}}));
    EXPECT_EQ(windows_of(seven.window(2, {.shift = 5})), (Windows{{0, 1}, {5, 6}}));
    EXPECT_EQ(windows_of(seven.window(1, {.shift = 8})), (Windows{{0}}));
    EXPECT_EQ(windows_of(seven.window(9)), (Windows{{0, 1, 2, 3, 4, 5, 6}}));
    EXPECT_THAT(windows_of(seven.window(9, {.drop_remainder = true})), IsEmpty());
  }
  EXPECT_THAT(windows_of(Dataset::range(0).window(2)), IsEmpty());
}

TEST(Window, IsThatOfItsPositions) {
  for (int64_t elements : {0, 1, 5, 8}) {
    for (int64_t size : {1, 2, 3}) {
      for (int64_t shift : {1, 2, 4}) {
        for (int64_t stride : {1, 2}) {
          for (bool drop : {false, true}) {
            Windows expected;
            for (int64_t first = 0; first < elements; first += shift) {
              std::vector<int64_t> window;
              for (int64_t i = 0; i < size && first + i * stride < elements; ++i) {
                window.push_back(first + i * stride);
              }
              if (!drop || std::ssize(window) == size) expected.push_back(window);
            }
            const WindowOptions options{.shift = shift, .stride = stride, .drop_remainder = drop};
            for (const Dataset& range : ranges(elements)) {
              EXPECT_EQ(windows_of(range.window(size, options)), expected);
            }
            EXPECT_EQ(Dataset::range(elements).window(size, options).cardinality(),
                      std::ssize(expected));
          }
        }
      }
    }
  }
}

TEST(Window, OfTuplesIsADatasetOfTuples) {
  const Dataset pairs = Dataset::zip({Dataset::range(3), Dataset::range(10, 13)});
  auto windows = pairs.window(2).iterator();
  EXPECT_THAT(texts(*windows.next()), ElementsAre("(0, 10)", "(1, 11)"));
  EXPECT_THAT(texts(windows.get_next()), ElementsAre("(2, 12)"));
  expect_error<OutOfRangeError>([&] { windows.get_next(); }, "");
}

TEST(Window, FlatMapAndMap) {
  const auto windows = Dataset::range(5).window(2, {.shift = 1, .drop_remainder = true});
  const Dataset batches = windows.flat_map([](const Dataset& window) { return window.batch(2); });
  EXPECT_THAT(texts(batches), ElementsAre("[0, 1]", "[1, 2]", "[2, 3]", "[3, 4]"));
  EXPECT_EQ(internal::str(batches.element_spec()), "TensorSpec(shape=(None,), dtype=int64)");
  const Dataset sums = windows.map([](const Dataset& window) {
    return window.reduce(Structure(0), [](int64_t sum, int64_t x) { return sum + x; });
  });
  EXPECT_THAT(ints(sums), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(windows_of(windows.skip(1).take(2)), (Windows{{1, 2}, {2, 3}}));
  EXPECT_EQ(windows_of(windows.take(1).repeat(2)), (Windows{{0, 1}, {0, 1}}));
}

TEST(Window, StatesResumeExactly) {
  for (const Dataset& range : ranges(11)) {
    for (int64_t shift : {1, 2, 5}) {
      const auto windows = range.window(3, {.shift = shift, .stride = 2});
      const Windows all = windows_of(windows);
      for (size_t done = 0; done <= all.size(); ++done) {
        auto first = windows.iterator();
        for (size_t i = 0; i < done; ++i) first.next();
        auto second = windows.iterator();
        second.restore(IteratorState::parse(first.state().serialize()));
        for (size_t i = done; i < all.size(); ++i) EXPECT_EQ(ints(*second.next()), all[i]);
        EXPECT_FALSE(second.next().has_value());
      }
    }
  }
}

TEST(Window, AStateWithinAWindowsBatches) {
  const Dataset batches = Dataset::range(9)
                              .filter([](int64_t) { return true; })
                              .window(4, {.shift = 2})
                              .flat_map([](const Dataset& window) { return window.batch(2); });
  const auto all = texts(batches);
  for (size_t done = 0; done <= all.size(); ++done) {
    auto first = batches.iterator();
    for (size_t i = 0; i < done; ++i) first.next();
    auto second = batches.iterator();
    second.restore(first.state());
    EXPECT_EQ(texts(second),
              std::vector<std::string>(all.begin() + static_cast<long>(done), all.end()));
  }
}

TEST(Window, AnElementThatFailsTakesItsWindowsAlong) {
  const auto windows = Dataset::range(5)
                           .map([](int64_t i) {
                             if (i == 2) throw InvalidArgumentError("two");
                             return i;
                           })
                           .window(2, {.shift = 1});
  auto iterator = windows.iterator();
  EXPECT_THAT(ints(*iterator.next()), ElementsAre(0, 1));
  expect_error<InvalidArgumentError>([&] { iterator.next(); }, "two");
  expect_error<InvalidArgumentError>([&] { iterator.next(); }, "two");
  EXPECT_THAT(ints(*iterator.next()), ElementsAre(3, 4));
  EXPECT_THAT(ints(*iterator.next()), ElementsAre(4));
  EXPECT_FALSE(iterator.next().has_value());
}

TEST(Window, RefusesSizesBelowOne) {
  const Dataset range = Dataset::range(5);
  expect_error<InvalidArgumentError>([&] { range.window(0); }, "window: size is 0");
  expect_error<InvalidArgumentError>([&] { range.window(1, {.shift = 0}); }, "shift is 0");
  expect_error<InvalidArgumentError>([&] { range.window(1, {.stride = -1}); }, "stride is -1");
  expect_error<InvalidArgumentError>([&] { range.window(INT64_MAX, {.stride = 2}); }, "more than");
}

TEST(Window, OfEndlessDatasets) {
  const auto windows = Dataset::range(3).repeat().window(2);
  EXPECT_EQ(windows.cardinality(), kInfiniteCardinality);
  EXPECT_EQ(windows_of(windows.take(2)), (Windows{{0, 1}, {2, 0}}));
}

}  // namespace
}  // namespace cohort::data
