#include "cohort/core/structure/device_settings.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::config {
namespace {

TEST(DeviceSettings, TensorFloat32IsSwitchedForProductsAndConvolutions) {
  const bool products = at::globalContext().allowTF32CuBLAS();
  const bool convolutions = at::globalContext().allowTF32CuDNN();
  enable_tensor_float_32_execution(true);
  EXPECT_TRUE(tensor_float_32_execution_enabled());
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
  enable_tensor_float_32_execution(false);
  EXPECT_FALSE(tensor_float_32_execution_enabled());
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
  at::globalContext().setAllowTF32CuDNN(convolutions);
  EXPECT_FALSE(tensor_float_32_execution_enabled());
  at::globalContext().setAllowTF32CuBLAS(products);
}

TEST(DeviceSettings, DeterminismIsLibtorchs) {
  enable_op_determinism();
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
  EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
  at::globalContext().setDeterministicAlgorithms(false, false);
  at::globalContext().setDeterministicCuDNN(false);
}

TEST(DeviceSettings, TheMemoryOfACpuIsNotCounted) {
  internal::expect_error<InvalidArgumentError>([] { get_memory_info("CPU:0"); }, "is a CPU");
  internal::expect_error<InvalidArgumentError>([] { reset_memory_stats("cpu"); }, "is a CPU");
  internal::expect_error<InvalidArgumentError>([] { get_memory_info("GPU:99"); },
                                               "there is no device");
}

}  // namespace
}  // namespace cohort::config
