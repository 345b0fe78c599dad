#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// 0, [1], [2, 2], ...: element i is i values i.
Dataset growing(int64_t count) {
  return Dataset::range(count).map(
      [](int64_t x) { return Structure(at::ones({x}, at::kLong) * x); });
}

TEST(PaddedBatch, PadsToTheLongestOfTheBatch) {
  EXPECT_THAT(texts(growing(5).padded_batch(2)),
              ElementsAre("[[0], [1]]", "[[2, 2, 0], [3, 3, 3]]", "[[4, 4, 4, 4]]"));
  EXPECT_EQ(growing(5).padded_batch(2).cardinality(), 3);
}

TEST(PaddedBatch, PadsToDeclaredShapesWithDeclaredValues) {
  const Dataset batches = growing(3).padded_batch(
      2, {.padded_shapes = {{3}}, .padding_values = Structure(-1), .drop_remainder = true});
  EXPECT_THAT(texts(batches), ElementsAre("[[-1, -1, -1], [1, -1, -1]]"));
  EXPECT_EQ(batches.element_spec(), StructureSpec(TensorSpec({{2, 3}}, int64)));
}

TEST(PaddedBatch, PadsEveryDimensionOfEveryLeaf) {
  const Dataset elements = Dataset::range(1, 3).map([](int64_t x) {
    return tuple(at::ones({x, 3 - x}), StringTensor(std::vector<std::string>(x, "a")));
  });
  EXPECT_THAT(texts(elements.padded_batch(2)),
              ElementsAre("([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]], "
                          "[[\"a\", \"\"], [\"a\", \"a\"]])"));
  EXPECT_THAT(
      texts(elements.padded_batch(2, {.padding_values = tuple(0.5, StringTensor::scalar("-"))}))[0],
      HasSubstr("[[\"a\", \"-\"], [\"a\", \"a\"]]"));
}

TEST(PaddedBatch, NoNumberIsAPaddingValueToo) {
  const Dataset elements =
      Dataset::range(1, 3).map([](int64_t x) { return Structure(at::ones({x}, at::kFloat)); });
  const PaddedBatchOptions options = {.padding_values =
                                          Structure(std::numeric_limits<double>::quiet_NaN())};
  const Tensor batch = elements.padded_batch(2, options).iterator().get_next().tensor();
  EXPECT_TRUE(batch[0][1].isnan().item<bool>());
  EXPECT_EQ(batch.isnan().sum().item<int64_t>(), 1);
  EXPECT_THROW(growing(2).padded_batch(2, options).iterator().next(), InvalidArgumentError);
}

// As tf.data does: what is known of the elements is enough to say it.
TEST(PaddedBatch, WhatCannotFitIsRefusedAtTheCall) {
  const Dataset rows = Dataset::from_tensor_slices(
      Structure::make_dict({{"x", at::ones({4, 3})}, {"s", StringTensor({"a", "b", "c", "d"})}}));
  const auto error = [&](PaddedBatchOptions options) {
    return thrown<InvalidArgumentError>([&] { rows.padded_batch(2, std::move(options)); });
  };
  const auto x_first = rows.padded_batch(2, {.padded_shapes = {{5}, {}}});
  EXPECT_EQ(x_first.iterator().get_next()["x"].tensor().size(1), 5);
  EXPECT_THAT(error({.padded_shapes = {{5, 5}, {}}}),
              AllOf(HasSubstr("another rank"), HasSubstr("'x'"), HasSubstr("[5,5]")));
  EXPECT_THAT(error({.padded_shapes = {{5}, {1}}}),
              AllOf(HasSubstr("another rank"), HasSubstr("'s'")));
  EXPECT_THAT(error({.padded_shapes = {{2}, {}}}),
              AllOf(HasSubstr("longer than their padded shape"), HasSubstr("[2]")));
  EXPECT_THAT(error({.padded_shapes = {{5}}}), HasSubstr("1 padded shapes"));
  EXPECT_THAT(error({.padding_values = Structure(0.5)}), HasSubstr("'s'"));
  EXPECT_THAT(error({.padding_values = tuple(0.5, StringTensor::scalar("-"))}),
              HasSubstr("another form"));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [] { Dataset::range(3).padded_batch(2, {.padding_values = Structure(0.5)}); }),
              HasSubstr("int64"));
}

TEST(PaddedBatch, StringsOfHigherRank) {
  const Dataset elements = Dataset::range(1, 3).map([](int64_t x) {
    return Structure(StringTensor(std::vector<std::string>(2 * x, std::to_string(x)), {2, x}));
  });
  EXPECT_THAT(texts(elements.padded_batch(2)),
              ElementsAre("[[[\"1\", \"\"], [\"1\", \"\"]], [[\"2\", \"2\"], [\"2\", \"2\"]]]"));
}

TEST(PaddedBatch, SaysWhichElementDoesNotFit) {
  const auto text = [](const Dataset& dataset) {
    return thrown<InvalidArgumentError>([&] { texts(dataset); });
  };
  EXPECT_THAT(text(growing(5).padded_batch(2, {.padded_shapes = {{2}}})),
              HasSubstr("element 3 is int64 [3] at top level, which is longer than its padded "
                        "shape [2]"));
  EXPECT_THAT(text(growing(2).padded_batch(2, {.padded_shapes = {{2, 2}}})),
              HasSubstr("another rank"));
  EXPECT_THAT(text(growing(2).padded_batch(2, {.padded_shapes = {{2}, {2}}})),
              HasSubstr("2 padded shapes, but elements have 1 leaves"));
  EXPECT_THAT(text(growing(2).padded_batch(2, {.padding_values = Structure(0.5)})),
              HasSubstr("no exact int64 scalar"));
  EXPECT_THAT(
      text(growing(2).padded_batch(2, {.padding_values = Structure(StringTensor::scalar("x"))})),
      HasSubstr("but the leaf is int64"));
  const Dataset ranks = Dataset::range(2).map(
      [](int64_t x) { return Structure(at::zeros(std::vector<int64_t>(x + 1, 1))); });
  EXPECT_THAT(text(ranks.padded_batch(2)), HasSubstr("elements 0 and 1 cannot be in one batch"));
  EXPECT_THROW(growing(2).padded_batch(0), InvalidArgumentError);
  EXPECT_THROW(growing(2).padded_batch(1, {.padded_shapes = {{-2}}}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
