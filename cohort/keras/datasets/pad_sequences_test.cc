#include "cohort/keras/datasets/pad_sequences.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/structure/structure.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/text.h"

namespace cohort::keras::utils {
namespace {

using internal::expect_error;

std::string padded(const PadSequencesOptions& options) {
  return internal::str(Structure(pad_sequences({{1}, {2, 3}, {4, 5, 6}}, options)));
}

TEST(PadSequences, PadsAndTruncatesAtEitherEnd) {
  EXPECT_EQ(padded({}), "[[0, 0, 1], [0, 2, 3], [4, 5, 6]]");
  EXPECT_EQ(padded({.value = -1}), "[[-1, -1, 1], [-1, 2, 3], [4, 5, 6]]");
  EXPECT_EQ(padded({.padding = "post"}), "[[1, 0, 0], [2, 3, 0], [4, 5, 6]]");
  EXPECT_EQ(padded({.maxlen = 2}), "[[0, 1], [2, 3], [5, 6]]");
  EXPECT_EQ(padded({.maxlen = 2, .truncating = "post"}), "[[0, 1], [2, 3], [4, 5]]");
  EXPECT_EQ(padded({.dtype = float32, .value = 0.5}),
            "[[0.5, 0.5, 1.0], [0.5, 2.0, 3.0], [4.0, 5.0, 6.0]]");
  EXPECT_EQ(pad_sequences({{1}}).scalar_type(), int32);
}

TEST(PadSequences, OfTensorsAndRaggedOnes) {
  const std::vector<Tensor> rows = {at::ones({2, 3}), at::ones({0}), at::ones({1, 3})};
  EXPECT_EQ(pad_sequences(rows).sizes(), (std::vector<int64_t>{3, 2, 3}));
  EXPECT_EQ(pad_sequences(rows).sum().item<int64_t>(), 9);
  const RaggedTensor ragged = RaggedTensor::from_row_lengths(at::arange(5), {3, 0, 2});
  EXPECT_EQ(internal::str(Structure(preprocessing::sequence::pad_sequences(ragged))),
            "[[0, 1, 2], [0, 0, 0], [0, 3, 4]]");
  EXPECT_EQ(pad_sequences(std::vector<Tensor>(), {.maxlen = 4}).sizes(),
            (std::vector<int64_t>{0, 4}));
}

TEST(PadSequences, WrongArgumentsAreRefused) {
  const auto fails = [](const PadSequencesOptions& options, const char* text) {
    expect_error<InvalidArgumentError>([&] { padded(options); }, text);
  };
  fails({.padding = "left"}, "padding is 'left'");
  fails({.truncating = ""}, "truncating is ''");
  fails({.maxlen = 0}, "maxlen is 0");
  fails({.dtype = uint8, .value = -1}, "value is -1, which uint8 does not hold");
  fails({.value = std::numeric_limits<double>::quiet_NaN()}, "which int32 does not hold");
  expect_error<InvalidArgumentError>(
      [] {
        pad_sequences({{1}, {2, int64_t{1} << 40}});
      },
      "sequence 1 has 1.09951e+12, which int32 does not hold");
  expect_error<InvalidArgumentError>([] { pad_sequences(std::vector<Tensor>()); }, "maxlen must");
  expect_error<InvalidArgumentError>(
      [] {
        pad_sequences(std::vector<Tensor>{at::ones({1, 2}), at::ones({1, 3})});
      },
      "sequence 1 has elements of shape [3], but those before it [2]");
  expect_error<InvalidArgumentError>(
      [] { pad_sequences(std::vector<Tensor>{at::scalar_tensor(1)}); }, "sequence 0 is");
}

}  // namespace
}  // namespace cohort::keras::utils
