// For tests of plans: random numbers, and a plan's results beside those of libtorch in float64.
#pragma once

#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal::plan {

struct Case {
  std::vector<Operation> operations;
  Shape input;
};

inline std::string text_of(const Case& c) {
  std::string text = ::testing::PrintToString(c.input);
  for (const Operation& operation : c.operations) text += ", " + describe(operation);
  return text;
}

// Whole numbers: their products and sums are exact in float32 and float64 alike, so that both sides
// find the same maxima and the same signs, however they round.
inline Tensor random_numbers(int64_t most, at::IntArrayRef shape) {
  return at::randint(-most, most + 1, shape, at::kFloat);
}

inline std::vector<Tensor> random_parameters(const Case& c) {
  std::vector<Tensor> parameters;
  Shape shape = c.input;
  for (const Operation& operation : c.operations) {
    for (const Shape& parameter : parameter_shapes(operation, shape)) {
      parameters.push_back(random_numbers(1, parameter));
    }
    shape = result_shape(operation, shape);
  }
  return parameters;
}

// A plan for the gradients of all parameters, with or without the input's; or for none.
inline Compiled compile(const Case& c, bool records, bool wants_input = true) {
  Request request{.operations = c.operations,
                  .input = c.input,
                  .records = records,
                  .wants_input = records && wants_input};
  for (const Operation& operation : c.operations) {
    for (size_t i = 0; i < num_parameters(operation); ++i) {
      request.wants_parameters.push_back(records);
    }
  }
  return Plan::compile(request);
}

// Within 1e-5 of the largest.
inline void expect_close(const Tensor& ours, const Tensor& theirs, const std::string& what) {
  ASSERT_TRUE(ours.defined()) << what;
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  if (theirs.numel() == 0) return;
  const double largest = std::max(theirs.abs().max().item<double>(), 1e-3);
  const double difference = (ours.to(at::kDouble) - theirs).abs().max().item<double>();
  EXPECT_LE(difference, 1e-5 * largest) << what;
}

inline std::vector<Tensor> sources_of(const Tensor& input, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> sources{input};
  sources.insert(sources.end(), parameters.begin(), parameters.end());
  for (const Tensor& source : sources) source.set_requires_grad(true);
  return sources;
}

// Values and gradients, with and without the input's, and values without recording.
inline void expect_plan_equals_libtorch(const Case& c) {
  const std::string what = text_of(c);
  const Tensor input = random_numbers(2, c.input);
  const std::vector<Tensor> parameters = random_parameters(c);
  const GradientTape tape({.persistent = true});
  const std::vector<Tensor> sources = sources_of(input, parameters);
  std::vector<Tensor> wide;
  for (const Tensor& source : sources) {
    wide.push_back(source.detach().to(at::kDouble).requires_grad_());
  }
  const Tensor theirs = evaluate(c.operations, wide[0], {wide.begin() + 1, wide.end()});
  const Tensor weights = random_numbers(2, theirs.sizes());
  const std::vector<Tensor> their_gradients =
      torch::autograd::grad({theirs}, wide, {weights.to(at::kDouble)});

  Tensor recorded;
  for (const bool wants_input : {true, false}) {
    if (!wants_input && parameters.empty()) continue;
    const Compiled compiled = compile(c, true, wants_input);
    ASSERT_NE(compiled.plan, nullptr) << what << ": " << compiled.why_not;
    recorded = run(compiled.plan, input, parameters);
    expect_close(recorded, theirs, what);
    const std::vector<Tensor> of(sources.begin() + (wants_input ? 0 : 1), sources.end());
    const std::vector<Tensor> gradients = torch::autograd::grad({recorded}, of, {weights});
    for (size_t i = 0; i < of.size(); ++i) {
      const size_t source = i + (wants_input ? 0 : 1);
      expect_close(gradients[i], their_gradients[source],
                   what + ": gradient " + std::to_string(source));
    }
  }
  const NoGradient no_gradient;
  const Compiled forward = compile(c, false);
  ASSERT_NE(forward.plan, nullptr);
  EXPECT_TRUE(run(forward.plan, input, parameters).equal(recorded.detach())) << what;
}

}  // namespace cohort::internal::plan
