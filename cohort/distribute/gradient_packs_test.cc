#include "cohort/distribute/gradient_packs.h"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cohort/distribute/gradient_contribution.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::internal {
namespace {

using distribute::Variable;

std::vector<Variable> variables(std::initializer_list<int64_t> sizes) {
  std::vector<Variable> made;
  for (const int64_t size : sizes) made.emplace_back(at::zeros({size}));
  return made;
}

TEST(UsableGradient, OfNegativesHasThemInItsMemory) {
  const Variable variable(at::zeros({2}));
  const Tensor usable = usable_gradient(at::_neg_view(at::ones({2})), variable, 0);
  EXPECT_EQ(usable.data_ptr<float>()[1], -1);
}

TEST(GradientPacks, GroupVariablesFromTheLastOneOn) {
  const int64_t item = sizeof(float);
  EXPECT_EQ(GradientPacks(variables({1, 1, 1}), 2, 1).num_packs(), 3u);
  EXPECT_EQ(GradientPacks(variables({1, 1, 1}), 2, 2 * item).num_packs(), 2u);
  EXPECT_EQ(GradientPacks(variables({1, 1, 1}), 2, 1000).num_packs(), 1u);
  EXPECT_EQ(GradientPacks(variables({}), 2, 1000).num_packs(), 0u);
}

TEST(GradientPacks, AddUpAPackOnceAllReplicasHaveBroughtAllOfIt) {
  GradientPacks packs(variables({2, 3, 4}), 2, 7 * sizeof(float));  // {2, 1}, {0}
  packs.begin();
  for (const size_t replica : {0u, 1u}) {
    packs.bring(replica, 2, at::full({4}, 1.0 + static_cast<double>(replica)));
    packs.bring(replica, 1, at::full({3}, 1.0 + static_cast<double>(replica)));
  }
  packs.bring(1, 0, at::ones({2}));
  packs.reduce_complete();
  EXPECT_TRUE(packs.reduced(2) && packs.reduced(1));
  EXPECT_FALSE(packs.reduced(0));
  EXPECT_TRUE(at::equal(packs.sum(2), at::full({4}, 3.0)));
  EXPECT_TRUE(at::equal(packs.sum(1), at::full({3}, 3.0)));
  EXPECT_TRUE(at::equal(packs.gradient(0, 2), at::ones({4})));  // as it was brought
}

TEST(GradientPacks, TheLastReplicaLeavesItToTheUpdate) {
  GradientPacks packs(variables({2}), 2, 1);
  packs.begin();
  packs.bring(0, 0, at::ones({2}));
  packs.reduce_complete();
  packs.bring(1, 0, at::ones({2}));
  packs.reduce_complete();
  EXPECT_FALSE(packs.reduced(0));
}

TEST(GradientPacks, BeginAndForgetForget) {
  GradientPacks packs(variables({2}), 2, 1);
  for (int step = 0; step < 2; ++step) {
    packs.begin();
    EXPECT_FALSE(packs.reduced(0));
    packs.bring(0, 0, at::ones({2}));
    packs.bring(1, 0, at::ones({2}));
    packs.reduce_complete();
    EXPECT_TRUE(at::equal(packs.sum(0), at::full({2}, 2.0)));
    packs.forget(0);
    EXPECT_FALSE(packs.gradient(0, 0).defined());
    EXPECT_TRUE(packs.gradient(1, 0).defined());
  }
}

TEST(GradientPacks, SparseGradientsAreLeftToTheUpdate) {
  GradientPacks packs(variables({2}), 2, 1);
  packs.begin();
  packs.bring(0, 0, at::ones({2}).to_sparse());
  packs.bring(1, 0, at::ones({2}));
  packs.reduce_complete();
  EXPECT_FALSE(packs.reduced(0));
}

}  // namespace
}  // namespace cohort::internal
