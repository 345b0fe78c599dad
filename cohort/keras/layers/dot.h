// Products of vectors of two inputs, for each example.
//
//   layers::Dot(1, {.normalize = true})({query, item});     // their cosine
//   layers::Dot({2, 1})({rows, columns});                   // matrix products
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

// An axis of each of two inputs; one number stands for both. Below 0: from the end.
struct AxisPair {
  AxisPair(int64_t axis) : AxisPair(axis, axis) {}
  AxisPair(int axis) : AxisPair(static_cast<int64_t>(axis)) {}
  AxisPair(int64_t first, int64_t second) : first(first), second(second) {}
  int64_t first;
  int64_t second;
};

struct DotOptions {
  bool normalize = false;  // vectors of length 1
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// The sum of products along an axis of each input.
// Shapes: a tuple of [batch, a.., n, b..] and [batch, c.., n, d..] -> [batch, a.., b.., c.., d..],
// or [batch, 1] where nothing but the batch would be left.
class COHORT_API Dot : public LayerHandle {
 public:
  // Errors: InvalidArgument (an axis is the batch); of a call, too (an axis that an input does not
  // have, unlike lengths or batches).
  explicit Dot(AxisPair axes, DotOptions options = {});
};

}  // namespace cohort::keras::layers
