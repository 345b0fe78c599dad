#include "cohort/ops/plan/recorded.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <optional>

#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_stream.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/max_pool.h"
#include "cohort/ops/plan/squares.h"
#include "cohort/ops/plan/testing_plan.h"

namespace cohort::internal::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::autograd::grad;

class RecordedPlan : public ::testing::Test {
 protected:
  Tensor run() const { return run(input); }
  Tensor run(const Tensor& x) const { return plan::run(compiled.plan, x, parameters); }
  Tensor reference() const { return evaluate(model.operations, input, parameters); }

  const Case model{{Convolution{.filters = 4, .size = {3, 3}}, kRelu, MaxPooling{}, Flatten{},
                    Dense{.units = 5}, kRelu, Dense{.units = 3}},
                   {6, 8, 8, 2}};
  const Tensor input = random_numbers(2, model.input);
  const std::vector<Tensor> parameters = random_parameters(model);
  const std::vector<Tensor> sources = sources_of(input, parameters);
  const Compiled compiled = compile(model, true);
  const GradientTape tape{{.persistent = true}};
};

TEST_F(RecordedPlan, SeveralBackwardPassesOverOneForwardPass) {
  const Tensor output = run();
  const auto first = grad({output.sum()}, sources, {}, /*retain_graph=*/true);
  const auto other = grad({output.square().sum()}, sources, {}, /*retain_graph=*/true);
  const auto again = grad({output.sum()}, sources, {}, /*retain_graph=*/false);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_TRUE(first[i].equal(again[i])) << i;
    EXPECT_FALSE(first[i].equal(other[i])) << i;
  }
  EXPECT_THROW(grad({output.sum()}, sources), c10::Error);
}

TEST_F(RecordedPlan, SeveralForwardPassesBeforeTheFirstBackwardPass) {
  const Tensor one = run();
  const auto expected = grad({one.sum()}, sources, {}, /*retain_graph=*/true);
  std::vector<Tensor> others;
  for (int i = 0; i < 5; ++i) others.push_back(run(random_numbers(2, model.input)));
  const auto found = grad({one.sum()}, sources);
  for (size_t i = 0; i < sources.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << i;
  // And one whose gradient nobody asks for.
  others.clear();
  const auto next = grad({run().sum()}, sources);
  for (size_t i = 0; i < sources.size(); ++i) EXPECT_TRUE(next[i].equal(expected[i])) << i;
}

TEST_F(RecordedPlan, SomeGradientsAlone) {
  const auto all = grad({run().sum()}, sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto one = grad({run().sum()}, {sources[i]});
    EXPECT_TRUE(one[0].equal(all[i])) << i;
  }
}

TEST_F(RecordedPlan, FrozenParametersAndAnInputWithoutGradient) {
  const auto all = grad({run().sum()}, sources);
  Request request = compiled.plan->request();
  request.wants_input = false;
  request.wants_parameters = {false, false, true, false, true, true};
  const std::vector<Tensor> own = {parameters[0].detach(), parameters[1].detach(), parameters[2],
                                   parameters[3].detach(), parameters[4],          parameters[5]};
  const Compiled partial = Plan::compile(request);
  ASSERT_NE(partial.plan, nullptr);
  EXPECT_FALSE(partial.plan->wants_gradient(0));
  const auto some =
      grad({plan::run(partial.plan, input.detach(), own).sum()}, {own[2], own[4], own[5]});
  EXPECT_TRUE(some[0].equal(all[3]));
  EXPECT_TRUE(some[1].equal(all[5]));
  EXPECT_TRUE(some[2].equal(all[6]));
}

TEST_F(RecordedPlan, GradientsOfGradientsAreLibtorchs) {
  const auto second = [&](const Tensor& output) {
    const auto first = grad({output.square().sum()}, sources, {}, /*retain_graph=*/true,
                            /*create_graph=*/true);
    Tensor penalty = at::zeros({});
    for (const Tensor& gradient : first) penalty = penalty + gradient.square().sum();
    return grad({penalty}, sources, {}, {}, false, /*allow_unused=*/true);
  };
  const auto ours = second(run());
  const auto theirs = second(reference());
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(difference(ours[i], theirs[i].to(at::kDouble), std::to_string(i)), "");
  }
}

TEST_F(RecordedPlan, GradientsThatAreRecordedEndWithTheirLastUser) {
  std::optional<WeakNodePtr<torch::autograd::Node>> node;
  {
    const Tensor output = run();
    node.emplace(output.grad_fn());
    const auto first = grad({output.square().sum()}, sources, {}, /*retain_graph=*/true,
                            /*create_graph=*/true);
    EXPECT_TRUE(first[0].requires_grad());
    EXPECT_FALSE(node->expired());
  }
  EXPECT_TRUE(node->expired());
}

TEST_F(RecordedPlan, ParametersThatAreOneTensor) {
  const Case twice{{Dense{.units = 4, .bias = false}, kRelu, Dense{.units = 4, .bias = false}},
                   {3, 4}};
  const Tensor kernel = random_numbers(2, {4, 4}).requires_grad_();
  const Tensor x = random_numbers(2, {3, 4}).requires_grad_();
  const Compiled plan = compile(twice, true);
  const auto both = [&](const Tensor& output) {
    return grad({output.square().sum()}, {kernel, x}, {}, true, /*create_graph=*/true);
  };
  const auto ours = both(plan::run(plan.plan, x, {kernel, kernel}));
  const auto theirs = both(evaluate(twice.operations, x, {kernel, kernel}));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(difference(ours[i].detach(), theirs[i].detach().to(at::kDouble), std::to_string(i)),
              "");
  }
  const auto plain = grad({plan::run(plan.plan, x, {kernel, kernel}).square().sum()}, {kernel, x});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(difference(plain[i], theirs[i].detach().to(at::kDouble), std::to_string(i)), "");
  }
}

TEST_F(RecordedPlan, AValueThatWasOverwrittenIsRefused) {
  const Tensor output = run();
  {
    const NoGradient no_gradient;
    parameters[2].mul_(2);
  }
  EXPECT_THROW(grad({output.sum()}, sources), c10::Error);
}

TEST_F(RecordedPlan, PenaltiesAreResultsOfTheUnitThatReadsTheParameter) {
  const auto loss = [&](const Tensor& output) {
    const Tensor penalties = sum_of_squares(parameters[0], 0.5) + sum_of_squares(parameters[2], 2) +
                             sum_of_squares(parameters[2], 0.25) + sum_of_squares(parameters[5], 1);
    return output.square().sum() + penalties * 3;
  };
  const Tensor output = run();
  EXPECT_EQ(sum_of_squares(parameters[0], 1).grad_fn()->name(), "Plan");
  const auto ours = grad({loss(output)}, sources, {}, /*retain_graph=*/true);
  const auto again = grad({loss(output)}, sources);
  // A pass that is over takes none in.
  EXPECT_EQ(sum_of_squares(parameters[0], 1).grad_fn()->name(), "SumOfSquares");
  const auto theirs = grad({loss(reference())}, sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(difference(ours[i], theirs[i].to(at::kDouble), std::to_string(i)), "");
    EXPECT_TRUE(ours[i].equal(again[i])) << i;
  }
}

TEST_F(RecordedPlan, APenaltysGradientNeedsNothingElse) {
  const Tensor output = run();
  const Tensor first = sum_of_squares(parameters[2], 0.5);
  const Tensor second = sum_of_squares(parameters[4], 0.5);
  const auto gradients =
      torch::autograd::grad({first}, {parameters[2], parameters[3], input}, {},
                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  EXPECT_TRUE(gradients[0].equal(parameters[2]));
  EXPECT_FALSE(gradients[1].defined());
  EXPECT_FALSE(gradients[2].defined());
  grad({output.sum()}, sources);  // gives the pass up, but no penalty
  EXPECT_TRUE(grad({second}, {parameters[4]})[0].equal(parameters[4]));

  std::vector<size_t> found;
  GradientStream stream(parameters);
  const Tensor next = run();
  stream.run(sum_of_squares(parameters[2], 0.5), [&](size_t i, Tensor) { found.push_back(i); });
  EXPECT_THAT(found, ElementsAre(2));
}

// Its inputs are the gradient of the result and that of the penalty, its outputs those of kernel
// and bias.
TEST_F(RecordedPlan, AUnitThatPassesNothingOnHasItsResultsInTheMemoryOfItsInputs) {
  const Case dense{{Dense{.units = 3}}, {2, 4}};
  const std::vector<Tensor> own = random_parameters(dense);
  for (const Tensor& parameter : own) parameter.set_requires_grad(true);
  const Tensor x = random_numbers(2, dense.input);
  const Compiled plan = compile(dense, /*records=*/true, /*wants_input=*/false);
  const Tensor output = plan::run(plan.plan, x, own);
  const Tensor penalty = sum_of_squares(own[0], 0.5);
  ASSERT_EQ(penalty.grad_fn(), output.grad_fn());
  const Tensor weights = random_numbers(2, output.sizes());
  torch::autograd::variable_list inputs{weights, at::ones({})};
  const auto* const memory = inputs.data();
  const NoGradient no_gradient;
  const torch::autograd::variable_list results = (*output.grad_fn())(std::move(inputs));
  EXPECT_EQ(results.data(), memory);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].equal(x.t().mm(weights) + own[0]));
  EXPECT_TRUE(results[1].equal(weights.sum(0)));
}

TEST_F(RecordedPlan, PenaltiesHaveGradientsOfGradients) {
  const Tensor output = run();
  const Tensor loss = (output.sum() * sum_of_squares(parameters[2], 0.5)).square();
  const Tensor expected = (reference().sum() * (parameters[2].square().sum() * 0.5)).square();
  const auto second = [&](const Tensor& target) {
    const Tensor first = grad({target}, {parameters[2]}, {}, true, /*create_graph=*/true)[0];
    return grad({first.square().sum()}, {parameters[2]})[0];
  };
  EXPECT_EQ(difference(second(loss), second(expected).to(at::kDouble), "second"), "");
}

TEST_F(RecordedPlan, PenaltiesOnWhatNoPassReadsAreOnTheirOwn) {
  const Tensor output = run();
  const Tensor other = random_numbers(2, {3}).requires_grad_();
  EXPECT_EQ(sum_of_squares(other, 1).grad_fn()->name(), "SumOfSquares");
  EXPECT_EQ(sum_of_squares(parameters[2] * 2, 1).grad_fn()->name(), "SumOfSquares");
  {
    const NoGradient no_gradient;
    parameters[2].mul_(2);
  }
  const Tensor changed = sum_of_squares(parameters[2], 0.5);
  EXPECT_EQ(changed.grad_fn()->name(), "SumOfSquares");
  EXPECT_TRUE(grad({changed}, {parameters[2]})[0].equal(parameters[2]));
}

// max_pool_tiles is one of those functions that take an undefined gradient for zeros.
TEST_F(RecordedPlan, PenaltiesAreNotConnectedWithWhatIsBeforeThePlan) {
  const Tensor images = random_numbers(2, {6, 16, 16, 2}).requires_grad_();
  const Tensor output = run(max_pool_tiles(images, {2, 2}));
  const auto gradients =
      torch::autograd::grad({sum_of_squares(parameters[0], 0.5)}, {parameters[0], images}, {},
                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  EXPECT_TRUE(gradients[0].equal(parameters[0]));
  EXPECT_FALSE(gradients[1].defined());
}

TEST_F(RecordedPlan, PenaltiesAreResultsOfAPlanAfterAPlan) {
  const Case dense{{Dense{.units = 3}}, {6, 3}};
  const std::vector<Tensor> own = random_parameters(dense);
  for (const Tensor& parameter : own) parameter.set_requires_grad(true);
  const Tensor output = plan::run(compile(dense, /*records=*/true).plan, run(), own);
  const Tensor penalty = sum_of_squares(own[0], 0.5);
  EXPECT_EQ(penalty.grad_fn(), output.grad_fn());
  const auto gradients =
      torch::autograd::grad({penalty}, {own[0], parameters[0], input}, {}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  EXPECT_TRUE(gradients[0].equal(own[0]));
  EXPECT_FALSE(gradients[1].defined());
  EXPECT_FALSE(gradients[2].defined());
}

TEST_F(RecordedPlan, LastLayersGradientsComeFirst) {
  std::vector<size_t> order;
  GradientStream stream(parameters);
  stream.run(run().sum(), [&](size_t i, Tensor) { order.push_back(i); });
  ASSERT_EQ(order.size(), 6u);
  EXPECT_THAT(std::vector<size_t>(order.begin(), order.begin() + 2),
              ::testing::UnorderedElementsAre(4, 5));
  EXPECT_THAT(std::vector<size_t>(order.begin() + 4, order.end()),
              ::testing::UnorderedElementsAre(0, 1));
}

TEST_F(RecordedPlan, IsPartOfALargerGraph) {
  const Tensor x = random_numbers(2, model.input).requires_grad_();
  const auto through = [&](const auto& middle) {
    return grad({(middle(x * 2) * x.sum()).sum()}, {x, parameters[0]});
  };
  const auto ours = through([&](const Tensor& y) { return run(y); });
  const auto theirs =
      through([&](const Tensor& y) { return evaluate(model.operations, y, parameters); });
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(difference(ours[i], theirs[i].to(at::kDouble), std::to_string(i)), "");
  }
}

}  // namespace
}  // namespace cohort::internal::plan
