#include "cohort/ops/reduce.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/testing_text.h"

namespace cohort {
namespace {

using internal::expect_error;

const NumberLiteral kRows = {{1, 2, 3}, {4, 5, 7}};

TEST(Reduce, OverAllDimensionsOrSome) {
  const Tensor x = constant(kRows);
  EXPECT_EQ(text(reduce_sum(x)), "int32 22");
  EXPECT_EQ(text(reduce_sum(x, {.axis = 0})), "int32 [5, 7, 10]");
  EXPECT_EQ(text(reduce_sum(x, {.axis = -1, .keepdims = true})), "int32 [[6], [16]]");
  EXPECT_EQ(text(reduce_sum(x, {.axis = {0, 1}})), "int32 22");
  EXPECT_EQ(text(reduce_max(x, {.axis = 1})), "int32 [3, 7]");
  EXPECT_EQ(text(reduce_min(x)), "int32 1");
  EXPECT_EQ(text(reduce_prod(x, {.axis = 1})), "int32 [6, 140]");
  EXPECT_EQ(text(reduce_mean(x.to(float32))), "float32 3.6666667");
  EXPECT_EQ(text(reduce_sum(constant(3))), "int32 3");
}

TEST(Reduce, KeepsTheDtypeAsTensorFlow) {
  EXPECT_EQ(text(reduce_mean(constant({1, 0, 1, 0}))), "int32 0");
  EXPECT_EQ(text(reduce_mean(constant({-3, 0}))), "int32 -1");
  EXPECT_EQ(text(reduce_sum(constant({200, 100}, uint8))), "uint8 44");
}

TEST(Reduce, OfNothing) {
  const Tensor none = zeros({0});
  EXPECT_EQ(text(reduce_sum(none)), "float32 0.0");
  EXPECT_EQ(text(reduce_prod(none)), "float32 1.0");
  EXPECT_EQ(text(reduce_mean(none)), "float32 nan");
  EXPECT_EQ(text(reduce_max(none)), "float32 -inf");
  EXPECT_EQ(text(reduce_min(zeros({0, 2}, int32), {.axis = 0})), "int32 [2147483647, 2147483647]");
  EXPECT_EQ(text(reduce_all(zeros({0}, boolean))), "bool true");
}

TEST(Reduce, OfBools) {
  const Tensor x = constant({{true, true}, {false, true}});
  EXPECT_EQ(text(reduce_all(x, {.axis = 1})), "bool [true, false]");
  EXPECT_EQ(text(reduce_any(x)), "bool true");
  expect_error<InvalidArgumentError>([&] { reduce_sum(x); }, "reduce_any");
  expect_error<InvalidArgumentError>([&] { reduce_all(constant(1)); }, "must be bool");
}

TEST(Reduce, RefusesAxesThatThereAreNot) {
  const Tensor x = constant(kRows);
  expect_error<InvalidArgumentError>([&] { reduce_sum(x, {.axis = 2}); },
                                     "axis 2 of int32 [2,3] does not exist");
  expect_error<InvalidArgumentError>([&] { reduce_max(x, {.axis = {1, -1}}); }, "twice");
  expect_error<InvalidArgumentError>([&] { reduce_mean(Tensor()); }, "undefined");
  expect_error<InvalidArgumentError>([&] { reduce_mean(zeros({0}, int32)); }, "no integers");
}

TEST(Reduce, GradientsFlow) {
  const Tensor x = constant({1., 4., 4.});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_EQ(text(tape.gradient(reduce_mean(x), x)), "float32 [0.33333334, 0.33333334, 0.33333334]");
  EXPECT_EQ(text(tape.gradient(reduce_max(x), x)), "float32 [0.0, 0.5, 0.5]");
}

TEST(ArgMax, FindsTheFirstOfTheGreatest) {
  const Tensor x = constant({{1, 9, 9}, {4, 0, 7}});
  EXPECT_EQ(text(argmax(x)), "int64 [1, 0, 0]");
  EXPECT_EQ(text(argmax(x, 1)), "int64 [1, 2]");
  EXPECT_EQ(text(argmin(x, -1, int32)), "int32 [0, 1]");
  expect_error<InvalidArgumentError>([] { argmax(constant(1)); }, "no dimension");
  expect_error<InvalidArgumentError>([&] { argmax(x, 2); }, "argmax");
  expect_error<InvalidArgumentError>([&] { argmax(zeros({0, 2}), 0); }, "argmax");
}

}  // namespace
}  // namespace cohort
