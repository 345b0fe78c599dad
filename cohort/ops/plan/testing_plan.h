// For tests of plans: a plan's results beside those of libtorch in float64. Without gtest's macros,
// since a fuzzer uses it, too.
#pragma once

#include <ATen/ops/randint.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/plan/random_case.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal::plan {

inline std::string text_of(const Case& c) {
  std::string text = shape_str(c.input);
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
    const double divisor = std::holds_alternative<Recurrent>(operation) ? kRecurrentDivisor : 1;
    for (const Shape& parameter : parameter_shapes(operation, shape)) {
      parameters.push_back(random_numbers(kMostParameter, parameter) / divisor);
    }
    const auto* normalization = std::get_if<Normalization>(&operation);
    if (normalization != nullptr && !normalization->by_batch) {
      parameters.back() = parameters.back().abs();  // a variance
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

// How they differ: empty where they agree to 1e-5 of the largest; of `least` where all are smaller,
// since they are sums of numbers of about one.
inline std::string difference(const Tensor& ours, const Tensor& theirs, const std::string& what,
                              double least = 0.1) {
  if (!ours.defined() || ours.sizes() != theirs.sizes()) {
    return str(what, ": ", internal::describe(ours), " for ", internal::describe(theirs), "\n");
  }
  if (theirs.numel() == 0) return "";
  const double largest = std::max(theirs.abs().max().item<double>(), least);
  const double most = (ours.to(at::kDouble) - theirs).abs().max().item<double>();
  if (most <= 1e-5 * largest) return "";
  return str(what, ": off by ", most, " of ", largest, "\n");
}

inline std::vector<Tensor> sources_of(const Tensor& input, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> sources{input};
  sources.insert(sources.end(), parameters.begin(), parameters.end());
  for (const Tensor& source : sources) source.set_requires_grad(true);
  return sources;
}

// How a plan's values and gradients, with and without the input's, and its values without recording
// differ from libtorch's; empty where they agree. no_plan: where it is no difference that there is
// none.
inline std::string difference_from_libtorch(const Case& c, bool no_plan = false) {
  const Tensor input = random_numbers(kMostInput, c.input);
  const std::vector<Tensor> parameters = random_parameters(c);
  const GradientTape tape({.persistent = true});
  const std::vector<Tensor> sources = sources_of(input, parameters);
  const auto sources_in = [&](DType dtype) {
    std::vector<Tensor> cast;
    for (const Tensor& source : sources) cast.push_back(source.detach().to(dtype).requires_grad_());
    return cast;
  };
  const auto libtorch = [&](const std::vector<Tensor>& from) {
    return evaluate(c.operations, from[0], {from.begin() + 1, from.end()});
  };
  const std::vector<Tensor> wide = sources_in(float64);
  const Tensor theirs = libtorch(wide);
  const Tensor weights = random_numbers(2, theirs.sizes());
  const std::vector<Tensor> their_gradients =
      torch::autograd::grad({theirs}, wide, {weights.to(at::kDouble)});
  // How far a gradient of libtorch's is off that is computed in float32 as ours is: some cannot be
  // known better.
  std::vector<Tensor> rounded;
  const auto off = [&](const Tensor& gradient, size_t i) {
    return (gradient.to(at::kDouble) - their_gradients[i]).abs().max().item<double>();
  };
  const auto is_as_good_as_rounded = [&](const Tensor& gradient, size_t i) {
    if (!gradient.defined() || gradient.sizes() != their_gradients[i].sizes()) return false;
    if (rounded.empty()) {
      const std::vector<Tensor> narrow = sources_in(float32);
      rounded = torch::autograd::grad({libtorch(narrow)}, narrow, {weights});
    }
    return off(gradient, i) <= 4 * off(rounded[i], i);
  };

  // Numbers that are rounded may add up to nothing, but for what their rounding leaves; and
  // Normalization takes a bias ahead of it out again, whose gradient is such a sum.
  const bool rounds = std::any_of(c.operations.begin(), c.operations.end(),
                                  [](const Operation& o) { return !is_exact(o); });
  const double least = rounds ? 10 : 0.1;
  std::string found;
  Tensor recorded;
  for (const bool wants_input : {true, false}) {
    if (!wants_input && parameters.empty()) continue;
    const Compiled compiled = compile(c, true, wants_input);
    if (compiled.plan == nullptr) return no_plan ? "" : str("no plan: ", compiled.why_not, "\n");
    recorded = run(compiled.plan, input, parameters);
    found += difference(recorded, theirs, "values");
    const size_t first = wants_input ? 0 : 1;
    const std::vector<Tensor> of(sources.begin() + static_cast<std::ptrdiff_t>(first),
                                 sources.end());
    const std::vector<Tensor> gradients = torch::autograd::grad({recorded}, of, {weights});
    for (size_t i = first; i < sources.size(); ++i) {
      const Tensor& ours = gradients[i - first];
      const std::string differs = difference(ours, their_gradients[i], str("gradient ", i), least);
      if (!differs.empty() && !is_as_good_as_rounded(ours, i)) found += differs;
    }
  }
  const NoGradient no_gradient;
  const Compiled forward = compile(c, false);
  if (forward.plan == nullptr) return found + "no plan without gradients\n";
  if (!run(forward.plan, input, parameters).equal(recorded.detach())) {
    found += "other bits without gradients\n";
  }
  return found;
}

}  // namespace cohort::internal::plan
