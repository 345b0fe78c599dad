// Turns small integers into vectors.
//
//   layers::CategoryEncoding weekdays(/*num_tokens=*/7, {.output_mode = "one_hot"});
//   weekdays(at::tensor({0, 6}));                                        // float32 [2, 7]
//   layers::CategoryEncoding sums(4, {.output_mode = "count"});
//   sums(tuple(at::tensor({0, 3, 3}), at::tensor({.5, 1., 2.})));      // .5, 0, 0, 3: weighted
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct CategoryEncodingOptions {
  // "one_hot": a vector for each integer, [n] and [n, 1] -> [n, num_tokens].
  // "multi_hot", "count": a vector for each row, [n, m] -> [n, num_tokens]: which integers are
  // there; how often.
  std::string output_mode = "multi_hot";
  std::optional<DType> dtype = std::nullopt;  // the output's; missing: backend::floatx()
  std::string name = "";
};

// Shapes: see output_mode; [] and, but for one_hot, [n] give one vector [num_tokens]. RaggedTensor
// -> a vector a row. Numbers that are no integers are rounded towards zero. With "count" also a
// tuple of the integers and, in the same shape, what each counts (Keras's count_weights).
// Errors (call): InvalidArgument (a number below 0, or not below num_tokens; not numbers; weights
// without "count", or of another shape; an output of more than two dimensions).
class COHORT_API CategoryEncoding : public LayerHandle {
 public:
  // Errors: InvalidArgument (num_tokens below 1, an unknown output_mode).
  explicit CategoryEncoding(int64_t num_tokens, CategoryEncodingOptions options = {});
};

}  // namespace cohort::keras::layers
