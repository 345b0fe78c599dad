#include "cohort/optim/constraint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;

Projection norms(std::vector<int64_t> axes, double least, double most, double rate = 1) {
  return {.kind = Projection::Kind::kNorm,
          .axes = std::move(axes),
          .least = least,
          .most = most,
          .rate = rate};
}

std::string refused(const Projection& projection, std::vector<int64_t> shape) {
  try {
    check_projection(projection, shape, "w");
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Constraint, SetsNegativeElementsToZero) {
  const Constraint constraint(Projection{.kind = Projection::Kind::kNonNegative});
  const Tensor found = constraint(at::tensor({-1., 0., 2.}));
  EXPECT_TRUE(found.equal(at::tensor({0., 0., 2.})));
}

TEST(Constraint, MovesNormsIntoTheirRange) {
  const Tensor rows = at::tensor({3., 4., 0.6, 0.8, 30., 40.}).view({3, 2});
  const Tensor found = Constraint(norms({-1}, 2, 10))(rows);
  EXPECT_TRUE(found.square().sum(1).sqrt().allclose(at::tensor({5., 2., 10.})));
  const Tensor half = Constraint(norms({1}, 2, 10, 0.5))(rows);
  EXPECT_TRUE(half.square().sum(1).sqrt().allclose(at::tensor({5., 1.5, 30.})));
  const Tensor none = Constraint(norms({0, 1}, 1, 1))(rows * 0);
  EXPECT_TRUE(none.equal(rows * 0));  // and no division by 0
}

// What Keras 2.15 gives, which takes what is below and to the right of the middle.
TEST(Constraint, MakesKernelsOfRings) {
  const Constraint radial(Projection{.kind = Projection::Kind::kRadial});
  const Tensor three = radial(at::arange(9, at::kDouble).view({3, 3, 1, 1})).view({9});
  EXPECT_TRUE(three.equal(at::tensor({4., 4., 4., 4., 0., 4., 4., 4., 4.})));
  const Tensor four = radial(at::arange(16, at::kDouble).view({4, 4, 1, 1})).view({4, 4});
  EXPECT_TRUE(four.slice(0, 1, 3).slice(1, 1, 3).eq(5).all().item<bool>());
  EXPECT_EQ(four.eq(15).sum().item<int64_t>(), 12);
}

TEST(Constraint, RefusesWhatDoesNotFitTheVariable) {
  EXPECT_EQ(refused(norms({0, -1}, 0, 1), {2, 3}), "");
  EXPECT_THAT(refused(norms({2}, 0, 1), {2, 3}), HasSubstr("'w', of shape [2,3], takes norms over "
                                                           "axis 2"));
  EXPECT_THAT(refused(norms({0, -2}, 0, 1), {2, 3}), HasSubstr("none twice"));
  EXPECT_THAT(refused({.kind = Projection::Kind::kRadial}, {3, 4, 1, 1}), HasSubstr("kernels"));
  const Constraint sum([](const Tensor& w) { return w.sum(); });
  EXPECT_THROW(sum(at::arange(3)), InvalidArgumentError);
}

TEST(Constraint, SpansRowsWhereNormsAreTakenOverThem) {
  EXPECT_TRUE(spans_rows(norms({0}, 0, 1), {4, 2}));
  EXPECT_TRUE(spans_rows(norms({1, -2}, 0, 1), {4, 2}));
  EXPECT_FALSE(spans_rows(norms({-1}, 0, 1), {4, 2}));
  EXPECT_FALSE(spans_rows({.kind = Projection::Kind::kNonNegative}, {4, 2}));
}

}  // namespace
}  // namespace cohort::optim
