#include "cohort/parameter_server/coordinator/exact_totals.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;

std::vector<Leaf> times(int count, double value, DType dtype) {
  return std::vector<Leaf>(static_cast<size_t>(count), Leaf(at::full({2}, value, dtype)));
}

std::string refused(const std::vector<Leaf>& leaves) {
  return thrown<InvalidArgumentError>([&] { exact_sum(leaves, "the sum"); });
}

TEST(ExactTotals, AreRefusedWhereTheirDtypeDoesNotHoldThem) {
  EXPECT_THAT(refused(times(4, 2e9, at::kInt)), HasSubstr("the sum is more than int32 holds"));
  EXPECT_THAT(refused(times(4, 200, at::kByte)), HasSubstr("uint8 holds"));
  EXPECT_THAT(refused(times(9, 40000, at::kHalf)), HasSubstr("as float64"));
  EXPECT_THAT(refused(times(4, 4e18, at::kLong)), HasSubstr("int64 holds"));
  EXPECT_THAT(refused(times(4, 1e308, at::kDouble)), HasSubstr("float64 holds"));
}

TEST(ExactTotals, AreExactWhereItHoldsThem) {
  std::vector<Leaf> counts = times(9, 1, at::kFloat);
  counts[0] = Leaf(at::full({2}, 16777216., at::kFloat));
  const Tensor sum = exact_sum(counts, "the sum");
  EXPECT_EQ(sum.scalar_type(), at::kFloat);
  EXPECT_EQ(sum[0].item<double>(), 16777224);
  EXPECT_EQ(exact_sum(times(4, 60, at::kByte), "the sum")[1].item<int>(), 240);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exact_sum(times(2, infinite, at::kFloat), "the sum")[0].item<double>(), infinite);
}

}  // namespace
}  // namespace cohort::internal
