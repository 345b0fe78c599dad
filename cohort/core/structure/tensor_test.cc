#include "cohort/core/structure/tensor.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

TEST(DescribeTest, NamesDtypeAndShape) {
  EXPECT_EQ(describe(at::zeros({2, 3})), "float32 [2,3]");
  EXPECT_EQ(describe(at::zeros({}, int64)), "int64 []");
  EXPECT_EQ(describe(Tensor()), "undefined tensor");
}

TEST(DtypeNameTest, GivesTensorFlowsNames) {
  EXPECT_EQ(dtype_name(float64), "float64");
  EXPECT_EQ(dtype_name(DType::Half), "float16");
  EXPECT_EQ(dtype_name(DType::BFloat16), "bfloat16");
  EXPECT_EQ(dtype_name(uint8), "uint8");
  EXPECT_EQ(dtype_name(int32), "int32");
  EXPECT_EQ(dtype_name(boolean), "bool");
  EXPECT_EQ(dtype_name(DType::ComplexFloat), "complex64");
}

TEST(DtypeNameTest, FallsBackToLibtorchsName) { EXPECT_EQ(dtype_name(DType::QInt8), "QInt8"); }

TEST(ShapeStrTest, ListsSizes) {
  EXPECT_EQ(shape_str({}), "[]");
  EXPECT_EQ(shape_str({128, 28, 1}), "[128,28,1]");
}

}  // namespace
}  // namespace cohort::internal
