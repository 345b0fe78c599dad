// LSTM and GRU as parts of plans.
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/ops/plan/plan.h"
#include "cohort/ops/plan/testing_plan.h"

namespace cohort::internal::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::autograd::grad;

std::vector<Recurrent> all_recurrent(int64_t units) {
  std::vector<Recurrent> all;
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    for (const int variant : {0, 1, 2, 3, 4, 5, 6, 7}) {
      all.push_back({.cell = cell,
                     .units = units,
                     .bias = (variant & 1) == 0,
                     .sequences = (variant & 2) != 0,
                     .backwards = (variant & 4) != 0});
    }
  }
  return all;
}

// An input and parameters of the usual size, all sources of gradients.
struct Sources {
  explicit Sources(const Case& c) : all{at::randn(c.input)} {
    Shape shape = c.input;
    for (const Operation& operation : c.operations) {
      for (const Shape& parameter : parameter_shapes(operation, shape)) {
        all.push_back(at::randn(parameter) * 0.2);
      }
      shape = result_shape(operation, shape);
    }
    for (const Tensor& tensor : all) tensor.set_requires_grad(true);
  }
  Tensor run(const Case& c, bool wants_input = true) const {
    const Compiled compiled = compile(c, true, wants_input);
    EXPECT_NE(compiled.plan, nullptr) << text_of(c) << ": " << compiled.why_not;
    return plan::run(compiled.plan, all[0], parameters());
  }
  std::vector<Tensor> parameters() const { return {all.begin() + 1, all.end()}; }

  std::vector<Tensor> all;
};

void expect_equals_libtorch(const Case& c) {
  SCOPED_TRACE(text_of(c));
  const GradientTape tape({.persistent = true});
  const Sources ours(c);
  Sources wide(ours);
  for (Tensor& tensor : wide.all) tensor = tensor.detach().to(at::kDouble).requires_grad_();
  const Tensor theirs = evaluate(c.operations, wide.all[0], wide.parameters());
  const Tensor weights = at::randn(theirs.sizes());
  const auto their_gradients = grad({theirs}, wide.all, {weights.to(at::kDouble)});
  for (const bool wants_input : {true, false}) {
    const Tensor output = ours.run(c, wants_input);
    EXPECT_EQ(difference(output.detach(), theirs.detach(), "output"), "");
    const size_t first = wants_input ? 0 : 1;
    const std::vector<Tensor> of(ours.all.begin() + static_cast<int64_t>(first), ours.all.end());
    const auto gradients = grad({output}, of, {weights});
    for (size_t i = 0; i < of.size(); ++i) {
      EXPECT_EQ(difference(gradients[i], their_gradients[first + i],
                           "gradient " + std::to_string(first + i)),
                "");
    }
    const NoGradient no_gradient;
    const Compiled forward = compile(c, false);
    EXPECT_TRUE(plan::run(forward.plan, ours.all[0], ours.parameters()).equal(output.detach()));
  }
}

TEST(RecurrentPlan, EqualsLibtorch) {
  for (const int64_t units : {1, 5, 16, 37, 64}) {
    for (const Recurrent& operation : all_recurrent(units)) {
      for (const Shape& input : {Shape{1, 4, 3}, Shape{5, 1, 2}, Shape{7, 6, 1}, Shape{35, 3, 9}}) {
        expect_equals_libtorch({{operation}, input});
      }
    }
  }
}

TEST(RecurrentPlan, EqualsLibtorchForManyExamplesAndSteps) {
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    expect_equals_libtorch({{Recurrent{.cell = cell, .units = 128}}, {32, 20, 64}});
    expect_equals_libtorch(
        {{Recurrent{.cell = cell, .units = 20, .sequences = true}}, {300, 2, 70}});
  }
}

TEST(RecurrentPlan, TakesPartInARun) {
  const Recurrent lower{.cell = Cell::kGru, .units = 6, .sequences = true};
  const Recurrent upper{.units = 5, .backwards = true};
  expect_equals_libtorch({{lower, upper, kRelu, Dense{.units = 3}}, {9, 4, 3}});
  expect_equals_libtorch({{lower, Flatten{}, Dense{.units = 3}}, {20, 4, 3}});
}

std::vector<Tensor> outcome(const Case& c, const Sources& sources) {
  const Tensor output = sources.run(c);
  std::vector<Tensor> all = grad({output.square().sum()}, sources.all);
  all.push_back(output.detach());
  return all;
}

TEST(RecurrentPlan, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    const Case c{{Recurrent{.cell = cell, .units = 96, .sequences = true}}, {70, 6, 48}};
    const GradientTape tape({.persistent = true});
    const Sources sources(c);
    std::vector<Tensor> expected;
    {
      const ScopedIntraOpThreads one(1);
      expected = outcome(c, sources);
    }
    for (const int threads : {2, 3, 5}) {
      const ScopedIntraOpThreads several(threads);
      const std::vector<Tensor> found = outcome(c, sources);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(found[i].equal(expected[i])) << i << " on " << threads << " threads";
      }
    }
  }
}

TEST(RecurrentPlan, FrozenParametersHaveNoGradient) {
  const Case c{{Recurrent{.units = 7}}, {4, 3, 5}};
  const GradientTape tape({.persistent = true});
  const Sources sources(c);
  const auto all = grad({sources.run(c).sum()}, sources.all);
  for (size_t only = 1; only < 4; ++only) {
    Request request{.operations = c.operations, .input = c.input, .records = true};
    std::vector<Tensor> own;
    for (size_t i = 1; i < 4; ++i) {
      request.wants_parameters.push_back(i == only);
      own.push_back(i == only ? sources.all[i] : sources.all[i].detach());
    }
    const Compiled partial = Plan::compile(request);
    const Tensor output = plan::run(partial.plan, sources.all[0].detach(), own);
    EXPECT_TRUE(grad({output.sum()}, {own[only - 1]})[0].equal(all[only])) << only;
  }
}

TEST(RecurrentPlan, SeveralBackwardPassesOverOneForwardPass) {
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    const Case c{{Recurrent{.cell = cell, .units = 7, .sequences = true}}, {4, 3, 5}};
    const GradientTape tape({.persistent = true});
    const Sources sources(c);
    const Tensor output = sources.run(c);
    const auto first = grad({output.sum()}, sources.all, {}, /*retain_graph=*/true);
    grad({output.square().sum()}, sources.all, {}, /*retain_graph=*/true);
    const auto again = grad({output.sum()}, sources.all);
    for (size_t i = 0; i < sources.all.size(); ++i) EXPECT_TRUE(first[i].equal(again[i])) << i;
  }
}

TEST(RecurrentPlan, GradientsOfGradientsAreLibtorchs) {
  for (const Recurrent& operation : all_recurrent(3)) {
    const Case c{{operation}, {2, 3, 4}};
    const GradientTape tape({.persistent = true});
    const Sources ours(c);
    Sources wide(ours);
    for (Tensor& tensor : wide.all) tensor = tensor.detach().to(at::kDouble).requires_grad_();
    const auto second = [](const Tensor& output, const std::vector<Tensor>& sources) {
      const auto first = grad({output.square().sum()}, sources, {}, true, /*create_graph=*/true);
      Tensor penalty = at::zeros({}, output.options());
      for (const Tensor& gradient : first) penalty = penalty + gradient.square().sum();
      return grad({penalty}, sources);
    };
    const auto found = second(ours.run(c), ours.all);
    const auto expected = second(evaluate(c.operations, wide.all[0], wide.parameters()), wide.all);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(difference(found[i].detach(), expected[i].detach(), std::to_string(i)), "");
    }
  }
}

TEST(RecurrentPlan, AChangedRecurrentKernelIsRefused) {
  const Case c{{Recurrent{.units = 3}}, {2, 3, 4}};
  const GradientTape tape({.persistent = true});
  const Sources sources(c);
  const Tensor output = sources.run(c);
  {
    const NoGradient no_gradient;
    sources.all[2].mul_(2);
  }
  EXPECT_THROW(grad({output.sum()}, sources.all), c10::Error);
}

TEST(RecurrentPlan, SaysWhatItIsAndWhyThereIsNone) {
  const Case c{{Recurrent{.cell = Cell::kGru, .units = 6}}, {3, 4, 5}};
  EXPECT_THAT(compile(c, true).plan->describe(), ElementsAre("GRU of 6 units over 4 steps"));
  EXPECT_THAT(compile({{Recurrent{}}, {3, 4}}, true).why_not, HasSubstr("LSTM does not take"));
  EXPECT_THAT(compile({{Recurrent{}}, {3, 0, 4}}, true).why_not, HasSubstr("does not take"));
  EXPECT_THAT(compile({{Recurrent{}}, {0, 2, 4}}, true).why_not, HasSubstr("empty"));
}

}  // namespace
}  // namespace cohort::internal::plan
