// For tests and the fuzzer of plans: operations drawn at random, so that rounding changes no maximum and
// no sign.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cohort/ops/plan/plan.h"

namespace cohort::internal::plan {

// Operations, and the shape of what they are given.
struct Case {
  std::vector<Operation> operations;
  Shape input;
};

// Whole numbers below this are exact in float32, and so are their sums.
inline constexpr double kExact = double{1 << 24};
// The largest inputs and parameters that a case is meant for.
inline constexpr int64_t kMostInput = 2;
inline constexpr int64_t kMostParameter = 1;
// The largest number for tanh and its like.
inline constexpr double kMostForCurves = 300;

// Whether it gives whole numbers for whole numbers.
inline bool is_exact(const Operation& operation) {
  if (std::holds_alternative<GlobalAverage>(operation) ||
      std::holds_alternative<Normalization>(operation)) {
    return false;
  }
  const auto* activation = std::get_if<Activation>(&operation);
  return activation == nullptr || activation->function == Function::kRelu ||
         activation->function == Function::kRelu6 || activation->function == Function::kLeakyRelu;
}

// Whether its gradient jumps somewhere, so that the last bit of what it is given may decide.
inline bool has_jump(const Operation& operation) {
  if (std::holds_alternative<MaxPooling>(operation)) return true;
  const auto* activation = std::get_if<Activation>(&operation);
  return activation != nullptr && (is_exact(operation) || activation->function == Function::kSelu);
}

template <class Draw>
Activation random_activation(const Draw& draw) {
  constexpr Function kFunctions[] = {Function::kRelu6,    Function::kLeakyRelu, Function::kElu,
                                     Function::kSelu,     Function::kTanh,      Function::kSigmoid,
                                     Function::kSoftplus, Function::kGelu,      Function::kSwish};
  const Function function = kFunctions[draw(0, std::ssize(kFunctions) - 1)];
  return {function, function == Function::kLeakyRelu ? 2. : 1.};
}

// draw(low, high): a number of that range, both ends included.
template <class Draw>
Operation random_operation(const Draw& draw, const Shape& shape) {
  const auto size = [&](int64_t most) { return Size{draw(1, most), draw(1, most)}; };
  const bool is_image = shape.size() == 4;
  switch (draw(0, 11)) {
    case 0:
    case 1: {
      Convolution convolution{.filters = draw(1, 3) == 3 ? 16 * draw(1, 3) : draw(1, 12),
                              .size = draw(0, 1) == 1 ? Size{3, 3} : size(4),
                              .strides = draw(0, 1) == 1 ? Size{1, 1} : size(3),
                              .same = draw(0, 1) == 1,
                              .bias = draw(0, 1) == 1};
      // libraries' strides and dilations exclude each other
      if (convolution.strides == Size{1, 1} && draw(0, 3) == 0) convolution.dilation = size(3);
      return convolution;
    }
    case 2: {
      const Size tile = draw(0, 1) == 1 ? Size{2, 2} : size(3);
      return MaxPooling{tile, tile};
    }
    case 3:
      if (is_image) return Flatten{};
      return Dense{.units = draw(1, 40), .bias = draw(0, 1) == 1};
    case 4:
      return Dropout{.rate = 0.5};
    case 5:
      return random_activation(draw);
    case 6:  // quarters at most
      return AveragePooling{{draw(1, 2), draw(1, 2)}, {draw(1, 3), draw(1, 3)}, draw(0, 1) == 1};
    case 7:
      return GlobalAverage{.keeps_axes = draw(0, 1) == 1};
    case 8:
      if (is_image) return Reshape{{shape[2], -1, shape[3]}};
      return Reshape{{1, -1, 1}};
    case 9:  // a large epsilon: a small variance magnifies what rounding leaves of it
      return Normalization{1, draw(0, 1) == 1, draw(0, 1) == 1, draw(0, 1) == 1};
    default:
      return kRelu;
  }
}

// Tiles of Winograd's F(2x2, 3x3): sums of 4 x 4 pixels with kernels of 9/4, of which 9 are added up,
// in quarters; beside 9 products.
inline constexpr int64_t kTransformed = 36;

// How much larger its results can be than what it is given, or what they are made of.
inline double growth(const Operation& operation, const Shape& input) {
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    const bool may_be_transformed =
        convolution->size == Size{3, 3} && convolution->filters % 16 == 0 && input.back() % 16 == 0;
    const int64_t products = convolution->size[0] * convolution->size[1] * input.back() + 1;
    return static_cast<double>(may_be_transformed ? kTransformed * products : products);
  }
  if (std::holds_alternative<Dense>(operation)) return static_cast<double>(input.back() + 1);
  if (std::holds_alternative<AveragePooling>(operation)) return 4;
  const auto* activation = std::get_if<Activation>(&operation);
  const bool cuts = activation != nullptr && (activation->function == Function::kRelu ||
                                              activation->function == Function::kRelu6);
  if (std::holds_alternative<Normalization>(operation)) return 3;
  const bool doubles = std::holds_alternative<Dropout>(operation) || activation != nullptr;
  return doubles && !cuts ? 2 : 1;
}

// Up to `most` operations that take each other's results, of which none exceeds kExact: so maxima and
// signs are the same, however sums are ordered. Behind one that is not exact gradients have no jumps.
template <class Draw>
Case random_case(const Draw& draw, int64_t most) {
  Case c{{},
         {draw(1, 3) == 3 ? draw(9, 40) : draw(1, 8), draw(4, 20), draw(4, 20),
          draw(0, 2) == 0 ? 1 : draw(1, 8)}};
  Shape shape = c.input;
  double largest = kMostInput;
  bool exact = true;
  bool normalized = false;
  const int64_t count = draw(1, most);
  for (int64_t i = 0; i < count; ++i) {
    const Operation operation = random_operation(draw, shape);
    Shape next = result_shape(operation, shape);
    const double grown = largest * growth(operation, shape);
    if (next.empty() || grown > kExact || !why_not(operation).empty()) continue;
    if (!exact && has_jump(operation)) continue;
    // a second one would leave nothing of the first one's gradients but what rounding does
    const bool normalizes = std::holds_alternative<Normalization>(operation);
    if (normalized && normalizes) continue;
    normalized = normalized || normalizes;
    // where all is saturated there is nothing to compare
    const bool curves = std::holds_alternative<Activation>(operation) && !is_exact(operation);
    if (curves && largest > kMostForCurves) continue;
    exact = exact && is_exact(operation);
    c.operations.push_back(operation);
    shape = std::move(next);
    largest = grown;
  }
  const bool computes = std::any_of(c.operations.begin(), c.operations.end(), [](const auto& o) {
    return !std::holds_alternative<Flatten>(o) && !std::holds_alternative<Reshape>(o);
  });
  if (!computes) c.operations.push_back(kRelu);
  return c;
}

}  // namespace cohort::internal::plan
