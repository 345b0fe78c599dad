#include "cohort/ops/tensor_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/indexed_slices.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/testing_text.h"

namespace cohort {
namespace {

using internal::expect_error;

TEST(TensorOps, Cast) {
  EXPECT_EQ(text(cast(constant({1.9, -1.9}), int32)), "int32 [1, -1]");
  EXPECT_EQ(text(cast(constant({0, 2}), boolean)), "bool [false, true]");
  EXPECT_EQ(text(cast(5, float32)), "float32 5.0");
  EXPECT_EQ(text(cast(5, float32) / constant({2, 4})), "float32 [2.5, 1.25]");
  expect_error<InvalidArgumentError>([] { cast(Tensor(), float32); }, "cast");
}

TEST(TensorOps, Shapes) {
  const Tensor x = constant({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(text(shape(x)), "int32 [2, 3]");
  EXPECT_EQ(text(reshape(x, {3, -1})), "int32 [[1, 2], [3, 4], [5, 6]]");
  EXPECT_EQ(text(transpose(x)), "int32 [[1, 4], [2, 5], [3, 6]]");
  EXPECT_EQ(text(transpose(x, {0, 1})), text(x));
  EXPECT_EQ(shape(expand_dims(x, -1)).equal(constant({2, 3, 1})), true);
  EXPECT_EQ(text(squeeze(constant({{{1}}}))), "int32 1");
  EXPECT_EQ(text(squeeze(constant({{{1}}}), {0, -1})), "int32 [1]");
  EXPECT_EQ(text(concat({x, x}, 0).select(1, 0)), "int32 [1, 4, 1, 4]");
  EXPECT_EQ(text(stack({constant(1), constant(2)})), "int32 [1, 2]");
  EXPECT_EQ(text(split(x, 3, 1)[2]), "int32 [[3], [6]]");
  EXPECT_EQ(text(tile(constant({1, 2}), {2})), "int32 [1, 2, 1, 2]");
  EXPECT_EQ(text(broadcast_to(constant(1), {2})), "int32 [1, 1]");
  EXPECT_EQ(text(gather(x, constant({{1}, {0}}))), "int32 [[[4, 5, 6]], [[1, 2, 3]]]");
  EXPECT_EQ(text(gather(x, constant({2, 0}), -1)), "int32 [[3, 1], [6, 4]]");
}

// As in TensorFlow.
TEST(TensorOps, TheFirstOfEqualOperandsHasTheGradient) {
  const Tensor x = constant({0., 1., 2.}), y = constant({0., 2., 1.});
  const auto slopes = [&](const auto& fn) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    tape.watch(y);
    const Tensor result = fn(x, y);
    return text(stack({tape.gradient(result, x), tape.gradient(result, y)}));
  };
  EXPECT_EQ(slopes([](const Tensor& a, const Tensor& b) { return maximum(a, b); }),
            "float32 [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]");
  EXPECT_EQ(slopes([](const Tensor& a, const Tensor& b) { return minimum(a, b); }),
            "float32 [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_EQ(text(tape.gradient(maximum(x, 0.), x)), "float32 [1.0, 1.0, 1.0]");
  EXPECT_EQ(text(tape.gradient(maximum(0., x), x)), "float32 [0.0, 1.0, 1.0]");
  EXPECT_EQ(text(tape.gradient(clip_by_value(x, 0., 1.), x)), "float32 [1.0, 1.0, 0.0]");
  const Tensor nothing = constant({std::nan(""), 1.});
  tape.watch(nothing);
  EXPECT_TRUE(maximum(nothing, constant({1., std::nan("")})).isnan().all().item<bool>());
  EXPECT_TRUE(minimum(nothing, constant({1., std::nan("")})).isnan().all().item<bool>());
  EXPECT_EQ(maximum(nothing, 0.).scalar_type(), float32);
}

TEST(TensorOps, WhatDoesNotFitIsAShortTypedError) {
  const Tensor x = constant({{1, 2, 3}, {4, 5, 6}});
  expect_error<InvalidArgumentError>([&] { reshape(x, {4, 2}); }, "reshape: ");
  expect_error<InvalidArgumentError>([&] { squeeze(x, {0}); }, "dimension 0 of int32 [2,3]");
  expect_error<InvalidArgumentError>([&] { concat({x, constant({1})}, 0); }, "concat: ");
  expect_error<InvalidArgumentError>([&] { split(x, 2, 1); }, "2 equal parts");
  expect_error<InvalidArgumentError>([&] { gather(x, constant({5})); }, "gather: ");
  try {
    add(x, constant({1, 2}));
    FAIL() << "shapes do not fit";
  } catch (const InvalidArgumentError& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 200U) << error.what();
  }
}

TEST(TensorOps, Matmul) {
  const Tensor a = constant({{1., 2.}, {3., 4.}});
  const Tensor b = constant({{5., 6.}});
  EXPECT_EQ(text(matmul(a, b, {.transpose_b = true})), "float32 [[17.0], [39.0]]");
  EXPECT_EQ(text(matmul(a, a, {.transpose_a = true})), "float32 [[10.0, 14.0], [14.0, 20.0]]");
  expect_error<InvalidArgumentError>([&] { matmul(a, constant({1., 2.})); }, "two dimensions");
  expect_error<InvalidArgumentError>([&] { matmul(a, b); }, "matmul: ");
}

TEST(TensorOps, ElementByElementWithNumbers) {
  const Tensor x = constant({-1., 4.});
  EXPECT_EQ(text(abs(x)), "float32 [1.0, 4.0]");
  EXPECT_EQ(text(square(x)), "float32 [1.0, 16.0]");
  EXPECT_EQ(text(math::log(exp(x))), "float32 [-1.0, 4.0]");
  EXPECT_EQ(text(floor(x / 3)), "float32 [-1.0, 1.0]");
  EXPECT_EQ(text(ceil(x / 3)), "float32 [-0.0, 2.0]");
  EXPECT_TRUE((square(sin(x)) + square(cos(x))).allclose(constant({1., 1.})));
  EXPECT_EQ(text(sqrt(abs(x))), "float32 [1.0, 2.0]");
  EXPECT_EQ(text(maximum(x, 0)), "float32 [0.0, 4.0]");
  EXPECT_EQ(text(minimum(2.5, x)), "float32 [-1.0, 2.5]");
  EXPECT_EQ(text(clip_by_value(x, 0, 1)), "float32 [0.0, 1.0]");
  EXPECT_EQ(text(pow(x, 2)), "float32 [1.0, 16.0]");
  EXPECT_EQ(text(multiply(x, 2)), "float32 [-2.0, 8.0]");
  EXPECT_EQ(text(greater(x, 0.5)), "bool [false, true]");
  EXPECT_EQ(text(equal(constant({1, 2}), constant({1, 3}, int64))), "bool [true, false]");
  EXPECT_EQ(text(where(less(x, 0), 0., x)), "float32 [0.0, 4.0]");
  EXPECT_EQ(text(logical_and(constant(true), logical_not(constant(true)))), "bool false");
}

// As in TensorFlow, whose operations make constants of Python's numbers.
TEST(TensorOps, NumbersOnBothSidesAreConstants) {
  const Tensor condition = constant({true, false});
  EXPECT_EQ(text(where(condition, 5., 1.)), "float32 [5.0, 1.0]");
  EXPECT_EQ(text(where(condition, 5, 1)), "int32 [5, 1]");
  EXPECT_EQ(text(where(condition, 5, 1.5)), "float32 [5.0, 1.5]");
  EXPECT_EQ(text(where(condition, true, false)), "bool [true, false]");
  EXPECT_EQ(text(where(condition, int64_t{5}, 1)), "int64 [5, 1]");
  EXPECT_EQ(text(add(1, 2)), "int32 3");
  EXPECT_EQ(text(subtract(1., 2)), "float32 -1.0");
  EXPECT_EQ(text(multiply(1.5, 2.)), "float32 3.0");
  EXPECT_EQ(text(divide(1., 2)), "float32 0.5");
  EXPECT_EQ(text(maximum(1, 2)), "int32 2");
  EXPECT_EQ(text(minimum(1.5, 2.)), "float32 1.5");
  EXPECT_EQ(text(pow(2, 3)), "int32 8");
  EXPECT_EQ(text(pow(2., 0.5) > 1.41), "bool true");
  EXPECT_EQ(text(less(1, 2.5)), "bool true");
  EXPECT_EQ(text(equal(2, 2.)), "bool true");
  EXPECT_EQ(text(logical_or(false, true)), "bool true");
  EXPECT_EQ(text(cast(2.5, int32)), "int32 2");
  // What comes out is no number of the program any more: it has a say in the promotion.
  EXPECT_EQ(text(add(add(1., 2.), constant({1}))), "float32 [4.0]");
}

TEST(TensorOps, ANumberTakesTheOtherSidesDtypeOrIsRefused) {
  const Tensor bytes = constant({1, 200}, uint8);
  EXPECT_EQ(text(where(constant({true, false}), bytes, 7)), "uint8 [1, 7]");
  EXPECT_EQ(text(maximum(100, bytes)), "uint8 [100, 200]");
  EXPECT_EQ(text(where(constant({true, false}), constant({1., 2.}, float64), 0.5)),
            "float64 [1.0, 0.5]");
  EXPECT_EQ(text(logical_and(constant({true, false}), true)), "bool [true, false]");
  EXPECT_EQ(text(add(constant({1}), 0.5)), "float32 [1.5]");
  expect_error<InvalidArgumentError>([&] { greater(bytes, 300); }, "300 does not fit uint8");
  expect_error<InvalidArgumentError>([&] { clip_by_value(bytes, -1, 5); }, "-1 does not fit uint8");
  expect_error<InvalidArgumentError>(
      [&] {
        where(constant({true, false}), 3000000000, constant(1));
      },
      "where: 3000000000 does not fit int32");
}

TEST(TensorOps, GradientsFlow) {
  const Tensor x = constant({1., 2.});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = concat({square(x), cast(x, float64)}, 0).sum();
  EXPECT_EQ(text(tape.gradient(y, x)), "float32 [3.0, 5.0]");
  const Tensor z =
      reshape(matmul(expand_dims(x, 0), expand_dims(x, 1)), {}) + maximum(x, 1.5).sum();
  EXPECT_EQ(text(tape.gradient(z, x)), "float32 [2.0, 5.0]");
}

TEST(CheckNumerics, NamesWhatItFound) {
  const Tensor fine =
      constant({1., std::numeric_limits<float>::max(), std::numeric_limits<float>::max()});
  EXPECT_TRUE(debugging::check_numerics(fine, "x").is_same(fine));
  const double inf = std::numeric_limits<double>::infinity();
  expect_error<InvalidArgumentError>(
      [&] {
        debugging::check_numerics(constant({0., inf}), "loss");
      },
      "loss : Tensor had Inf values");
  expect_error<InvalidArgumentError>(
      [&] {
        debugging::check_numerics(constant({NAN, -inf}), "loss");
      },
      "Inf and NaN values");
  expect_error<InvalidArgumentError>([&] { debugging::check_numerics(constant(1), "loss"); },
                                     "floating");
}

TEST(IndexedSlices, OfASparseGradient) {
  const Tensor sparse = constant({{0., 0.}, {1., 2.}}).to_sparse(1);
  const IndexedSlices rows = indexed_slices(sparse);
  EXPECT_EQ(text(rows.values), "float32 [[1.0, 2.0]]");
  EXPECT_EQ(text(rows.indices), "int64 [1]");
  expect_error<InvalidArgumentError>([] { indexed_slices(constant({1})); }, "int32 [1]");
}

}  // namespace
}  // namespace cohort
