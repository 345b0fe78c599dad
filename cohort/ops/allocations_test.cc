// What is made anew in each step asks for no memory once a step has been made.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "cohort/core/bytes/kept_blocks.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/plan/plan_cache.h"
#include "cohort/testing/allocation_counter.h"

namespace cohort::internal {
namespace {

class PassingNode final : public GraphNode {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    Tensor gradient = gradients[0];
    return only(std::move(gradients), std::move(gradient));
  }
};

TEST(AllocationsTest, BlocksAreTakenAgain) {
  const auto take_and_give_back = [] {
    std::array<void*, 8> blocks;
    for (void*& block : blocks) block = take_block(200);
    for (void* block : blocks) give_back_block(block, 200);
  };
  take_and_give_back();
  const testing::AllocationCounter counter;
  for (int i = 0; i < 100; ++i) take_and_give_back();
  EXPECT_EQ(counter.counts().total(), 0);
}

TEST(AllocationsTest, ANoGradientAsksForNoMemory) {
  const auto record = [] {
    const GradientTape tape;
    const NoGradient off;
  };
  record();
  const testing::AllocationCounter counter;
  for (int i = 0; i < 100; ++i) record();
  EXPECT_EQ(counter.counts().total(), 0);
}

TEST(AllocationsTest, NodesAndTheirEdgesAreMadeInMemoryOfTheStepBefore) {
  const Tensor leaf = at::ones({}).requires_grad_();
  const std::array<Tensor, 3> leaves = {leaf, leaf, leaf};
  const NodePtr<torch::autograd::Node> accumulator =
      torch::autograd::impl::grad_accumulator(leaf);  // else each step makes one
  const auto step = [&] {
    const auto first = make_node<PassingNode>();
    first->set_next_edges(edges_of(leaves));
    const auto second = make_node<PassingNode>();
    torch::autograd::edge_list edges = take_edges();
    edges.emplace_back(first, 0);
    second->set_next_edges(std::move(edges));
  };
  // The two lists of edges change places.
  for (int i = 0; i < 2; ++i) step();
  const testing::AllocationCounter counter;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(counter.counts().total(), 0);
}

// Of the shapes that came last, whose memory is kept; of those before, in bytes.
TEST(AllocationsTest, PassesOfTheLatestFourShapesAskForNoMemory) {
  constexpr int64_t kUnits = 64;
  plan::PlanCache cache({plan::Dense{.units = kUnits}, plan::Activation{}, plan::Dense{.units = 2}},
                        /*most_bytes=*/0);
  const auto plan_of = [&](int64_t batch) {
    const int64_t shape[] = {batch, 3};
    const plan::PlanCache::Key key{shape, 0b11110};
    const auto known = cache.find(key);
    return (known != nullptr ? known : cache.compile(key))->plan;
  };
  const auto pass_over = [](const plan::Plan& plan) {
    const testing::AllocationCounter counter;
    auto forward = plan.take_forward();
    auto backward = plan.take_backward();
    plan.give_back(std::move(forward));
    plan.give_back(std::move(backward));
    return counter.counts().bytes;
  };
  // The values between the two products, and their gradients.
  const auto bytes_of = [](int64_t batch) {
    return testing::allocation_counting_available() ? 2 * batch * kUnits * int64_t{sizeof(float)}
                                                    : 0;
  };

  for (const int64_t batch : {100, 200, 300, 400}) {
    EXPECT_GE(pass_over(*plan_of(batch)), bytes_of(batch));
  }
  for (int round = 0; round < 3; ++round) {
    for (const int64_t batch : {100, 200, 300, 400}) EXPECT_EQ(pass_over(*plan_of(batch)), 0);
  }
  EXPECT_GE(pass_over(*plan_of(500)), bytes_of(500));  // takes the place of 100
  for (const int64_t batch : {200, 300, 400, 500}) EXPECT_EQ(pass_over(*plan_of(batch)), 0);
  EXPECT_GE(pass_over(*plan_of(100)), bytes_of(100));  // of 200
  EXPECT_GE(pass_over(*plan_of(200)), bytes_of(200));
  EXPECT_EQ(pass_over(*plan_of(100)), 0);

  // A pass that is under way when its plan falls behind.
  const auto plan = plan_of(100);
  auto late = plan->take_forward();
  for (const int64_t batch : {200, 300, 400, 500}) plan_of(batch);
  plan->give_back(std::move(late));
  EXPECT_GE(pass_over(*plan), bytes_of(100));
  EXPECT_GE(pass_over(*plan), bytes_of(100)) << "kept behind the latest four";
}

TEST(AllocationsTest, PassesOfManySmallShapesAskForNoMemory) {
  plan::PlanCache cache({plan::Dense{.units = 4}});
  const auto pass_over = [&](int64_t batch) {
    const int64_t shape[] = {batch, 3};
    const plan::PlanCache::Key key{shape, 0b111};
    const auto known = cache.find(key);
    const auto plan = (known != nullptr ? known : cache.compile(key))->plan;
    plan->give_back(plan->take_forward());
    plan->give_back(plan->take_backward());
  };
  const auto pass_over_all = [&] {
    for (int64_t batch = 1; batch <= 16; ++batch) pass_over(batch);
  };
  pass_over_all();
  const testing::AllocationCounter counter;
  pass_over_all();
  EXPECT_EQ(counter.counts().total(), 0);
}

TEST(AllocationsTest, ANodeWithOneOutputNeedsNoListForIt) {
  const auto node = make_node<PassingNode>();
  torch::autograd::variable_list gradients{at::ones({})};
  const testing::AllocationCounter counter;
  for (int i = 0; i < 100; ++i) gradients = node->apply(std::move(gradients));
  EXPECT_EQ(counter.counts().total(), 0);
}

}  // namespace
}  // namespace cohort::internal
