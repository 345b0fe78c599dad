#include "cohort/distribute/gradients/replica_gradients.h"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cohort/distribute/gradients/gradient_contribution.h"

namespace cohort::internal {
namespace {

TEST(UsableGradient, OfNegativesHasThemInItsMemory) {
  const distribute::Variable variable(at::zeros({2}));
  const Tensor usable = usable_gradient(at::_neg_view(at::ones({2})), variable, 0);
  EXPECT_EQ(usable.data_ptr<float>()[1], -1);
}

TEST(ReplicaGradients, AReplicaForgetsItsOwn) {
  ReplicaGradients gradients(2, 2);
  for (const size_t replica : {0u, 1u}) {
    gradients.bring(replica, 1, at::full({2}, 1.0 + static_cast<double>(replica)));
  }
  EXPECT_FALSE(gradients.gradient(0, 0).defined());
  gradients.forget(0);
  EXPECT_FALSE(gradients.of(0)[1].defined());
  EXPECT_TRUE(at::equal(gradients.gradient(1, 1), at::full({2}, 2.0)));
}

}  // namespace
}  // namespace cohort::internal
