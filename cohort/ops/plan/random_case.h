// For tests and the fuzzer of plans: operations drawn at random, so that rounding changes no
// maximum and no sign.
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
// The largest number for tanh and its like, and the largest sum of an LSTM's or GRU's inputs.
inline constexpr double kMostForCurves = 300;
// The parameters of an LSTM or GRU are divided by this, so that few of its gates are saturated.
inline constexpr double kRecurrentDivisor = 8;

// Whether it gives whole numbers for whole numbers.
inline bool is_exact(const Operation& operation) {
  if (std::holds_alternative<GlobalAverage>(operation) ||
      std::holds_alternative<Normalization>(operation) ||
      std::holds_alternative<Recurrent>(operation)) {
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

// Whether a convolution of such images may take fewer products
// (SharedByConvolutions::has_fewer_products).
inline bool may_have_fewer_products(const Convolution& convolution, const Shape& images) {
  return convolution.size == Size{3, 3} && convolution.strides == Size{1, 1} &&
         convolution.dilation == Size{1, 1} && convolution.filters % 16 == 0 &&
         images.back() % 16 == 0;
}

// draw(low, high): a number of that range, both ends included.
template <class Draw>
Size random_size(const Draw& draw, int64_t most) {
  return {draw(1, most), draw(1, most)};
}

// Every other one that may take fewer products does.
template <class Draw>
Convolution random_convolution(const Draw& draw, const Shape& images) {
  if (images.back() % 16 == 0 && draw(0, 1) == 1) {
    return {.filters = 16 * draw(1, 3),
            .size = {3, 3},
            .same = draw(0, 1) == 1,
            .bias = draw(0, 1) == 1};
  }
  Convolution convolution{.filters = draw(1, 3) == 3 ? 16 * draw(1, 3) : draw(1, 12),
                          .size = draw(0, 1) == 1 ? Size{3, 3} : random_size(draw, 4),
                          .strides = draw(0, 1) == 1 ? Size{1, 1} : random_size(draw, 3),
                          .same = draw(0, 1) == 1,
                          .bias = draw(0, 1) == 1};
  // libraries' strides and dilations exclude each other
  if (convolution.strides == Size{1, 1} && draw(0, 3) == 0) {
    convolution.dilation = random_size(draw, 3);
  }
  return convolution;
}

template <class Draw>
Recurrent random_recurrent(const Draw& draw) {
  return {.cell = draw(0, 1) == 1 ? Cell::kGru : Cell::kLstm,
          .units = draw(1, 20),
          .bias = draw(0, 1) == 1,
          .sequences = draw(0, 1) == 1,
          .backwards = draw(0, 1) == 1};
}

template <class Draw>
Operation random_operation(const Draw& draw, const Shape& shape) {
  const bool is_image = shape.size() == 4;
  switch (draw(0, 12)) {
    case 0:
    case 1:
      return random_convolution(draw, shape);
    case 2: {
      const Size tile = draw(0, 1) == 1 ? Size{2, 2} : random_size(draw, 3);
      return MaxPooling{tile, tile};
    }
    case 3:
      if (shape.size() != 2) return Flatten{};
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
    case 10:
      if (shape.size() == 3) return random_recurrent(draw);
      if (is_image) return Reshape{{shape[1], -1}};
      return Reshape{{1, -1}};
    default:
      return kRelu;
  }
}

// Tiles of Winograd's F(2x2, 3x3): sums of 4 x 4 pixels with kernels of 9/4, of which 9 are added
// up, in quarters; beside 9 products.
inline constexpr int64_t kTransformed = 36;

// How much larger its results can be than what it is given, or what they are made of.
inline double growth(const Operation& operation, const Shape& input) {
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    const int64_t products = convolution->size[0] * convolution->size[1] * input.back() + 1;
    const bool fewer = may_have_fewer_products(*convolution, input);
    return static_cast<double>(fewer ? kTransformed * products : products);
  }
  if (std::holds_alternative<Recurrent>(operation)) return 1;  // of what is 1 at most itself
  if (std::holds_alternative<Dense>(operation)) return static_cast<double>(input.back() + 1);
  if (std::holds_alternative<AveragePooling>(operation)) return 4;
  const auto* activation = std::get_if<Activation>(&operation);
  const bool cuts = activation != nullptr && (activation->function == Function::kRelu ||
                                              activation->function == Function::kRelu6);
  if (std::holds_alternative<Normalization>(operation)) return 3;
  const bool doubles = std::holds_alternative<Dropout>(operation) || activation != nullptr;
  return doubles && !cuts ? 2 : 1;
}

// Draws an input of images, every sixth time one of sequences.
template <class Draw>
Shape random_input(const Draw& draw) {
  const int64_t batch = draw(1, 3) == 3 ? draw(9, 40) : draw(1, 8);
  if (draw(1, 6) == 6) return {batch, draw(1, 8), draw(1, 20)};
  Shape shape{batch, draw(4, 20), draw(4, 20)};
  switch (draw(0, 3)) {
    case 0:
      shape.push_back(1);
      break;
    case 1:
      shape.push_back(16 * draw(1, 2));
      break;
    default:
      shape.push_back(draw(1, 8));
  }
  return shape;
}

// Up to `most` operations that take each other's results, of which none exceeds kExact: so maxima
// and signs are the same, however sums are ordered. Behind one that is not exact gradients have no
// jumps.
template <class Draw>
Case random_case(const Draw& draw, int64_t most) {
  Case c{{}, random_input(draw)};
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
    const bool recurs = std::holds_alternative<Recurrent>(operation);
    if (recurs && largest * static_cast<double>(shape.back()) > kMostForCurves) continue;
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
