#include "cohort/core/cpu/blas_kernels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

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

#if defined(__x86_64__) && defined(__linux__)
TEST(BlasKernels, TheProcessorIsAsked) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto has = [&](const char* flag) { return text.find(flag) != std::string::npos; };
  EXPECT_EQ(vector_units().avx2, has(" avx2") && has(" fma"));
  EXPECT_EQ(vector_units().avx512,
            has(" avx512f") && has(" avx512bw") && has(" avx512dq") && has(" avx512vl"));
}
#endif

}  // namespace
}  // namespace cohort::internal
