#include "cohort/core/blas_kernels.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

constexpr VectorUnits kNone{}, kAvx2{.avx2 = true}, kAvx512{.avx2 = true, .avx512 = true};

TEST(BlasKernels, OldOnesOnANewProcessorHaveBetter) {
  EXPECT_EQ(better_blas_kernels("Prescott", kAvx512), "SkylakeX");
  EXPECT_EQ(better_blas_kernels("Prescott", kAvx2), "Haswell");
  EXPECT_EQ(better_blas_kernels("Nehalem", kAvx2), "Haswell");
}

TEST(BlasKernels, ThoseThatFitStay) {
  EXPECT_EQ(better_blas_kernels("Prescott", kNone), "");
  for (const char* chosen : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sandybridge", "ARMV8"}) {
    EXPECT_EQ(better_blas_kernels(chosen, kAvx512), "") << chosen;
  }
}

TEST(BlasKernels, TheProcessorIsAsked) {
  // What has the wide units has the narrow ones.
  EXPECT_TRUE(!vector_units().avx512 || vector_units().avx2);
}

}  // namespace
}  // namespace cohort::internal
