#include "cohort/keras/datasets/timeseries_dataset.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"

namespace cohort::keras::utils {
namespace {

using internal::expect_error;
using testing::ElementsAre;

Tensor steps(int64_t n) { return at::arange(n, at::dtype(at::kLong)); }

TEST(Timeseries, GivesWindows) {
  const auto windows = timeseries_dataset_from_array(
      steps(10), {}, 3, {.sequence_stride = 2, .sampling_rate = 2, .batch_size = 2});
  EXPECT_THAT(data::texts(windows), ElementsAre("[[0, 2, 4], [2, 4, 6]]", "[[4, 6, 8]]"));
  EXPECT_EQ(windows.cardinality(), 2);
  EXPECT_EQ(internal::str(windows.element_spec()), "TensorSpec(shape=(None, 3), dtype=int64)");
  const auto wide =
      timeseries_dataset_from_array(steps(12).view({6, 2}), {}, 2, {.batch_size = std::nullopt});
  EXPECT_EQ(data::texts(wide)[4], "[[8, 9], [10, 11]]");
}

TEST(Timeseries, WithTargets) {
  const auto pairs = timeseries_dataset_from_array(
      steps(10), steps(10) * 10, 3, {.batch_size = 4, .start_index = 2, .end_index = 8});
  EXPECT_THAT(data::texts(pairs),
              ElementsAre("([[2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 7]], [20, 30, 40, 50])"));
  // There are as many windows as targets.
  EXPECT_EQ(data::texts(timeseries_dataset_from_array(steps(10), steps(3), 3)).at(0),
            "([[0, 1, 2], [1, 2, 3], [2, 3, 4]], [0, 1, 2])");
  EXPECT_EQ(timeseries_dataset_from_array(steps(4), {}, 5).cardinality(), 0);
}

TEST(Timeseries, ShufflesAndResumes) {
  for (const std::optional<uint64_t> seed :
       {std::optional<uint64_t>(3), std::optional<uint64_t>()}) {
    const auto make = [&] {
      return timeseries_dataset_from_array(
          steps(40), {}, 2, {.batch_size = std::nullopt, .shuffle = true, .seed = seed});
    };
    const auto dataset = make();
    auto first = data::ints(dataset), second = data::ints(dataset);
    EXPECT_NE(first, second) << "each pass has its own order";
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    EXPECT_EQ(first, second);
    if (seed) data::expect_resumable(make);
  }
}

TEST(Timeseries, WrongArgumentsAreRefused) {
  const auto fails = [](const TimeseriesDatasetOptions& options, const char* text) {
    expect_error<InvalidArgumentError>(
        [&] { timeseries_dataset_from_array(steps(5), {}, 2, options); }, text);
  };
  fails({.sequence_stride = 0}, "sequence_stride is 0; with 5 steps it is in [1, 5)");
  fails({.sampling_rate = 5}, "sampling_rate is 5");
  fails({.batch_size = 0}, "batch_size is 0");
  fails({.start_index = -1}, "start_index is -1");
  fails({.end_index = 5}, "end_index is 5");
  fails({.start_index = 3, .end_index = 3}, "not above start_index 3");
  fails({.shuffle = true, .seed = uint64_t{1} << 32}, "below 2^32");
  expect_error<InvalidArgumentError>([] { timeseries_dataset_from_array(steps(5), {}, 0); },
                                     "sequence_length is 0");
  expect_error<InvalidArgumentError>(
      [] { timeseries_dataset_from_array(at::scalar_tensor(1), {}, 1); }, "data is");
  expect_error<InvalidArgumentError>(
      [] { timeseries_dataset_from_array(steps(9), steps(4), 1, {.start_index = 2}); },
      "there are 4 targets, but a window begins at step 5");
}

}  // namespace
}  // namespace cohort::keras::utils
