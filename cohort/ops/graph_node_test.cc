#include "cohort/ops/graph_node.h"

#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <thread>

namespace cohort::internal {
namespace {

using torch::autograd::variable_list;

// What libtorch multiplies by 3 is multiplied by 3 on the way back.
class TripledNode final : public GraphNode {
 public:
  explicit TripledNode(int* alive = nullptr) : alive_(alive) {
    if (alive_ != nullptr) ++*alive_;
  }
  ~TripledNode() override {
    if (alive_ != nullptr) --*alive_;
  }
  std::string name() const override { return "Tripled"; }
  variable_list apply(variable_list&& gradients) override {
    const Tensor gradient = gradients[0];
    return only(std::move(gradients), gradient * 3);
  }

 private:
  int* const alive_;
};

Tensor tripled(const Tensor& x, int* alive = nullptr) {
  Tensor result = x.detach() * 3;
  record(result, edges_of(x), make_node<TripledNode>(alive));
  return result;
}

Tensor gradient(const Tensor& y, const Tensor& x, bool retain = false) {
  return torch::autograd::grad({y}, {x}, {at::ones(y.sizes())}, retain)[0];
}

Tensor leaf() { return at::full({2}, 0.5).requires_grad_(); }

TEST(GraphNodeTest, GraphsOfEarlierStepsStayAsTheyAre) {
  const Tensor x = leaf();
  const Tensor kept = tripled(tripled(x));
  for (int step = 0; step < 5; ++step) {
    const Tensor y = tripled(x);
    EXPECT_TRUE(at::allclose(gradient(y, x), at::full({2}, 3.)));
  }
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_TRUE(at::allclose(gradient(kept, x, /*retain=*/true), at::full({2}, 9.)));
  }
}

TEST(GraphNodeTest, TheNextNodeHasTheMemoryOfTheLastAndItsEdges) {
#ifdef __SANITIZE_ADDRESS__
  constexpr bool kKeeps = false;
#else
  constexpr bool kKeeps = true;
#endif
  const Tensor x = leaf();
  auto node = make_node<TripledNode>();
  const auto* const place = static_cast<const void*>(node.get());
  node->set_next_edges(edges_of({x, x, x}));
  const auto* const edges = static_cast<const void*>(node->next_edges().data());
  node.reset();
  node = make_node<TripledNode>();
  node->set_next_edges(edges_of({x, Tensor(), at::ones({2})}));
  EXPECT_EQ(static_cast<const void*>(node->next_edges().data()), edges);
  EXPECT_EQ(static_cast<const void*>(node.get()) == place, kKeeps);
  EXPECT_TRUE(node->next_edge(0).is_valid());
  EXPECT_FALSE(node->next_edge(1).is_valid());
  EXPECT_FALSE(node->next_edge(2).is_valid());
}

TEST(GraphNodeTest, MemoryThatIsKeptHoldsNoVariable) {
  int alive = 0;
  {
    const Tensor x = leaf();
    const Tensor middle = tripled(x, &alive);
    const Tensor y = tripled(middle, &alive);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(GraphNodeTest, LongGraphsEndWithoutRecursion) {
  int alive = 0;
  {
    Tensor y = leaf();
    for (int i = 0; i < 50'000; ++i) y = tripled(y, &alive);
  }
  EXPECT_EQ(alive, 0);
}

TEST(GraphNodeTest, AnotherThreadMayEndAGraph) {
  const Tensor x = leaf();
  std::optional<Tensor> y;
  std::thread([&] { y = tripled(tripled(x)); }).join();
  EXPECT_TRUE(at::allclose(gradient(*y, x), at::full({2}, 9.)));
  y = tripled(x);
  std::thread([&] { y.reset(); }).join();
}

TEST(GraphNodeTest, NodesMayOutliveWhatTheirThreadKeeps) {
  std::thread([] {
    thread_local Tensor last;  // destroyed after what nodes keep, which comes to be later
    last = at::ones({});
    last = tripled(leaf());
  }).join();
}

TEST(GraphNodeTest, TheNumberOfAnyScalar) {
  const Tensor scalar = at::full({}, 1.5);
  EXPECT_EQ(number_of(scalar), 1.5f);
  EXPECT_EQ(number_of(at::_neg_view(scalar)), -1.5f);
  EXPECT_EQ(number_of(at::full({}, 2.5, at::kDouble)), 2.5f);
  EXPECT_EQ(number_of(scalar.expand({1, 1})), 1.5f);
  EXPECT_EQ(number_of(at::_efficientzerotensor({}, at::kFloat)), 0.f);
}

TEST(GraphNodeTest, ResultsTakeTheMemoryOfTheInputs) {
  for (const size_t count : {size_t{1}, size_t{2}, size_t{5}}) {
    variable_list inputs{at::ones({1}), at::ones({2})};
    const auto* const memory = inputs.data();
    const variable_list results = undefined(std::move(inputs), count);
    ASSERT_EQ(results.size(), count);
    for (const Tensor& result : results) EXPECT_FALSE(result.defined());
    EXPECT_EQ(results.data() == memory, count <= 2);
  }
}

TEST(GraphNodeTest, AResultTakesTheMemoryOfTheInputs) {
  variable_list inputs{at::ones({1}), at::ones({2})};
  const auto* const memory = inputs.data();
  const variable_list results = only(std::move(inputs), at::ones({3}));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].size(0), 3);
  EXPECT_EQ(results.data(), memory);
}

}  // namespace
}  // namespace cohort::internal
