#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "cohort/core/structure/structure.h"

namespace cohort {
namespace {

std::string printed(const Structure& structure) { return internal::str(structure); }

template <class T>
std::string printed_scalar(T value, DType dtype) {
  return printed(at::full({}, value, at::TensorOptions().dtype(dtype)));
}

TEST(StructurePrintTest, SmallTensorsPrintTheirValuesNestedByShape) {
  EXPECT_EQ(printed(at::tensor({1, 2, 3, 4}).view({2, 2})), "[[1, 2], [3, 4]]");
  EXPECT_EQ(printed(at::tensor({1, 2, 3, 4}).view({2, 2}).t()), "[[1, 3], [2, 4]]");
  EXPECT_EQ(printed(at::tensor({0.5, -2.0})), "[0.5, -2.0]");
  EXPECT_EQ(printed(at::zeros({1, 1, 1}, int32)), "[[[0]]]");
}

TEST(StructurePrintTest, EmptyTensorsPrintAsEmptyLists) {
  EXPECT_EQ(printed(at::zeros({0})), "[]");
  EXPECT_EQ(printed(at::zeros({0, 3})), "[]");
  EXPECT_EQ(printed(StringTensor()), "[]");
  EXPECT_EQ(printed(StringTensor(std::vector<std::string>(), {3, 0})), "[]");
}

TEST(StructurePrintTest, ScalarsPrintPlain) {
  EXPECT_EQ(printed(7), "7");
  EXPECT_EQ(printed(true), "true");
  EXPECT_EQ(printed(0.1), "0.1");
  EXPECT_EQ(printed_scalar(200, uint8), "200");
  EXPECT_EQ(printed_scalar(std::numeric_limits<int64_t>::min(), int64), "-9223372036854775808");
}

TEST(StructurePrintTest, FloatsPrintTheShortestTextThatReadsBack) {
  EXPECT_EQ(printed_scalar(0.1, float64), "0.1");
  EXPECT_EQ(printed_scalar(1.0 / 3, float64), "0.3333333333333333");
  EXPECT_EQ(printed_scalar(1.0 / 3, float32), "0.33333334");
  EXPECT_EQ(printed_scalar(100000.0, float32), "100000.0");
  EXPECT_EQ(printed_scalar(1e20, float64), "1e+20");
  EXPECT_EQ(printed_scalar(1.5e-7, float64), "1.5e-07");
  EXPECT_EQ(printed_scalar(-0.0, float64), "-0.0");
  EXPECT_EQ(printed_scalar(1.5, DType::Half), "1.5");
  EXPECT_EQ(printed_scalar(1.5, DType::BFloat16), "1.5");
  EXPECT_EQ(printed_scalar(std::numeric_limits<double>::quiet_NaN(), float32), "nan");
  EXPECT_EQ(printed_scalar(-std::numeric_limits<double>::infinity(), float32), "-inf");
}

TEST(StructurePrintTest, LargerTensorsPrintDtypeAndShape) {
  EXPECT_EQ(printed(at::zeros({16}, int64)), "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
  EXPECT_EQ(printed(at::zeros({17}, int64)), "int64 [17]");
  EXPECT_EQ(printed(at::zeros({128, 28, 28, 1})), "float32 [128,28,28,1]");
}

TEST(StructurePrintTest, TensorsWithoutReadableValuesPrintDtypeAndShape) {
  EXPECT_EQ(printed(at::zeros({2}, DType::ComplexFloat)), "complex64 [2]");
  EXPECT_EQ(printed(at::zeros({2}, at::TensorOptions().device(at::kMeta))), "float32 [2]");
  EXPECT_EQ(printed(Tensor()), "undefined tensor");
}

TEST(StructurePrintTest, ATensorWithGradientPrints) {
  EXPECT_EQ(printed(at::zeros({1}).requires_grad_()), "[0.0]");
}

TEST(StructurePrintTest, AnImaginaryPartOfAConjugatePrintsItsSign) {
  const Tensor number = at::complex(at::full({}, 1.0f), at::full({}, 2.0f));
  EXPECT_EQ(printed(at::imag(number.conj())), "-2.0");
}

TEST(StructurePrintTest, StringsPrintQuoted) {
  EXPECT_EQ(printed(StringTensor({"a", "b c"})), R"(["a", "b c"])");
  EXPECT_EQ(printed(StringTensor(std::vector<std::string>(17))), "string [17]");
  EXPECT_EQ(printed(StringTensor::scalar(std::string(1000, 'x'))), "string []");
}

TEST(StructurePrintTest, TuplesAndDictsPrintAsInPython) {
  EXPECT_EQ(printed(tuple()), "()");
  EXPECT_EQ(printed(tuple(1)), "(1,)");
  EXPECT_EQ(printed(tuple(1, tuple(2, 0.5))), "(1, (2, 0.5))");
  EXPECT_EQ(printed(dict({})), "{}");
  EXPECT_EQ(printed(dict({{"a", 1}, {"it's", tuple(2)}})), "{'a': 1, 'it\\'s': (2,)}");
}

}  // namespace
}  // namespace cohort
