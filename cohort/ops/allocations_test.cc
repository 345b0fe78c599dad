// What is made anew in each step asks for no memory once a step has been made.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <array>

#include "cohort/core/kept_blocks.h"
#include "cohort/ops/graph_node.h"
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

TEST(AllocationsTest, NodesAndTheirEdgesAreMadeInMemoryOfTheStepBefore) {
  const Tensor leaf = at::ones({}).requires_grad_();
  const std::array<Tensor, 3> leaves = {leaf, leaf, leaf};
  const std::shared_ptr<torch::autograd::Node> accumulator =
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

TEST(AllocationsTest, ANodeWithOneOutputNeedsNoListForIt) {
  const auto node = make_node<PassingNode>();
  torch::autograd::variable_list gradients{at::ones({})};
  const testing::AllocationCounter counter;
  for (int i = 0; i < 100; ++i) gradients = node->apply(std::move(gradients));
  EXPECT_EQ(counter.counts().total(), 0);
}

}  // namespace
}  // namespace cohort::internal
