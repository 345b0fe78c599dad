#include "cohort/ops/make_tensor.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/testing_text.h"

namespace cohort {
namespace {

using internal::expect_error;

TEST(Constant, HasTheDtypesOfPythonsNumbers) {
  EXPECT_EQ(text(constant(1.5)), "float32 1.5");
  EXPECT_EQ(text(constant(1)), "int32 1");
  EXPECT_EQ(text(constant(int64_t{1})), "int64 1");
  EXPECT_EQ(text(constant(true)), "bool true");
  EXPECT_EQ(text(constant({1, 2, 3})), "int32 [1, 2, 3]");
  EXPECT_EQ(text(constant({1, 2.5})), "float32 [1.0, 2.5]");
  EXPECT_EQ(text(constant({0})), "int32 [0]");
  EXPECT_EQ(text(constant({true, false})), "bool [true, false]");
  EXPECT_EQ(text(constant({})), "float32 []");
}

TEST(Constant, NestsListsAndStrings) {
  EXPECT_EQ(text(constant({{1, 2}, {3, 4}})), "int32 [[1, 2], [3, 4]]");
  EXPECT_EQ(text(constant({{1.}})), "float32 [[1.0]]");
  EXPECT_EQ(internal::str(constant({"a", "b"})), R"(["a", "b"])");
  EXPECT_EQ(internal::str(constant({{"a", "b"}, {"c", "d"}})), R"([["a", "b"], ["c", "d"]])");
  EXPECT_EQ(constant("word").item(), "word");
  EXPECT_EQ(constant(std::string("word")).dim(), 0);
}

TEST(Constant, TakesVectorsWithTheirOwnDtype) {
  EXPECT_EQ(text(constant(std::vector<double>{0.5, 1})), "float64 [0.5, 1.0]");
  EXPECT_EQ(text(constant(std::vector<int64_t>{1, 2})), "int64 [1, 2]");
  EXPECT_EQ(text(constant(std::vector<bool>{true, false})), "bool [true, false]");
  EXPECT_EQ(text(constant(std::vector<std::vector<float>>{{1, 2}, {3, 4}})),
            "float32 [[1.0, 2.0], [3.0, 4.0]]");
  EXPECT_EQ(constant(std::vector<std::string>{"a", "b"}).sizes(), std::vector<int64_t>{2});
  EXPECT_EQ(constant(std::vector<float>{}).numel(), 0);
  const std::vector<std::vector<std::string>> rows{{"a", "b"}, {"c", "d"}};
  EXPECT_EQ(internal::str(constant(rows)), R"([["a", "b"], ["c", "d"]])");
  EXPECT_EQ(internal::str(constant(rows, {.shape = {{4}}})), R"(["a", "b", "c", "d"])");
  expect_error<InvalidArgumentError>(
      [] {
        constant(std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}});
      },
      "row 1");
}

TEST(Constant, OfADtypeAndAShape) {
  EXPECT_EQ(text(constant({1, 2}, float64)), "float64 [1.0, 2.0]");
  EXPECT_EQ(text(constant(7, {.dtype = int64, .shape = {{2, 2}}})), "int64 [[7, 7], [7, 7]]");
  EXPECT_EQ(text(constant({1, 2, 3, 4}, {.shape = {{2, 2}}})), "int32 [[1, 2], [3, 4]]");
  EXPECT_EQ(text(constant(constant({1, 2}), {.dtype = float32})), "float32 [1.0, 2.0]");
}

TEST(Constant, RefusesWhatWouldLoseSomething) {
  expect_error<InvalidArgumentError>([] { constant({{1, 2}, {3}}); }, "member 1");
  expect_error<InvalidArgumentError>([] { constant({1, true}); }, "true or false");
  expect_error<InvalidArgumentError>([] { constant(1.5, int32); }, "int32 of 1.5");
  expect_error<InvalidArgumentError>([] { constant(1, boolean); }, "bool of 1");
  expect_error<InvalidArgumentError>([] { constant({1, 300}, uint8); }, "does not fit uint8");
  expect_error<InvalidArgumentError>(
      [] {
        constant({1, 2, 3}, {.shape = {{2}}});
      },
      "3 numbers do not fill shape [2]");
}

TEST(MakeTensor, HasTensorFlowsDefaults) {
  EXPECT_EQ(text(zeros({2})), "float32 [0.0, 0.0]");
  EXPECT_EQ(text(zeros({})), "float32 0.0");
  EXPECT_EQ(text(ones({2}, int64)), "int64 [1, 1]");
  EXPECT_EQ(text(zeros_like(constant({1, 2}))), "int32 [0, 0]");
  EXPECT_EQ(text(ones_like(constant({1, 2}), float32)), "float32 [1.0, 1.0]");
  EXPECT_EQ(text(fill({2}, 9)), "int32 [9, 9]");
  EXPECT_EQ(text(fill({2}, 0.5)), "float32 [0.5, 0.5]");
  EXPECT_EQ(text(eye(2)), "float32 [[1.0, 0.0], [0.0, 1.0]]");
  EXPECT_EQ(text(linspace(0, 1, 3)), "float32 [0.0, 0.5, 1.0]");
  expect_error<InvalidArgumentError>([] { zeros({2, -1}); }, "[2,-1]");
  expect_error<InvalidArgumentError>([] { zeros_like(Tensor()); }, "zeros_like");
}

TEST(MakeTensor, OfMoreThanThereIsMemorySaysIt) {
  constexpr int64_t kMany = int64_t{1} << 28;
  expect_error<ResourceExhaustedError>([] { zeros({kMany, kMany / 2}); }, "zeros: ");
  expect_error<ResourceExhaustedError>([] { ones({kMany, kMany / 2}); }, "ones: ");
  expect_error<ResourceExhaustedError>([] { fill({kMany, kMany / 2}, 1); }, "fill: ");
  expect_error<ResourceExhaustedError>([] { eye(kMany); }, "eye: ");
  expect_error<ResourceExhaustedError>([] { range(1e17, float64); }, "range: ");
  expect_error<ResourceExhaustedError>([] { linspace(0, 1, kMany * kMany / 2); }, "linspace: ");
}

TEST(Range, CountsAsTensorFlow) {
  EXPECT_EQ(text(range(5)), "int32 [0, 1, 2, 3, 4]");
  EXPECT_EQ(text(range(3, 18, 6)), "int32 [3, 9, 15]");
  EXPECT_EQ(text(range(3, 1, -0.5)), "float32 [3.0, 2.5, 2.0, 1.5]");
  EXPECT_EQ(text(range(2, int64)), "int64 [0, 1]");
  EXPECT_EQ(range(0).numel(), 0);
  expect_error<InvalidArgumentError>([] { range(5, 0); }, "delta 1 does not lead from 5 to 0");
  expect_error<InvalidArgumentError>([] { range(0, 5, 0); }, "delta 0");
}

TEST(OneHot, PutsTheDepthWhereTheAxisIs) {
  EXPECT_EQ(text(one_hot(constant({0, 2, 5, -1}), 3)),
            "float32 [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]");
  EXPECT_EQ(text(one_hot(constant({0, 1, 1}), 2, {.axis = 0, .dtype = int32})),
            "int32 [[1, 0, 0], [0, 1, 1]]");
  EXPECT_EQ(text(one_hot(constant({1}), 2, {.on_value = 5, .off_value = -1})),
            "float32 [[-1.0, 5.0]]");
  EXPECT_EQ(text(one_hot(constant(1), 2)), "float32 [0.0, 1.0]");
  expect_error<InvalidArgumentError>([] { one_hot(constant({0.5}), 2); }, "must be integers");
  expect_error<InvalidArgumentError>([] { one_hot(constant({0}), 2, {.axis = 3}); }, "one_hot");
}

}  // namespace
}  // namespace cohort
