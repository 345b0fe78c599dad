// Sorts combinations of values into a fixed number of bins.
//
//   layers::HashedCrossing crossing(/*num_bins=*/1000);
//   crossing(tuple(StringTensor({"Bern", "Graz"}), at::tensor({3, 5})));   // int64 [2]
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct HashedCrossingOptions {
  // "int": a bin for each combination. "one_hot": a vector for each, of num_bins numbers.
  std::string output_mode = "int";
  // The output's dtype; missing: int64 with "int", else backend::floatx().
  std::optional<DType> dtype = std::nullopt;
  std::string name = "";
};

// Inputs, a tuple of two or more: strings or integers of one shape, [], [n] or [n, 1] -> the same
// shape with output_mode "int", else [num_bins] or [n, num_bins]. The bins are those of Keras 2.15;
// they depend on the order of the inputs.
// Errors (call): InvalidArgument (one input, or a dict; other shapes; numbers that are no
// integers).
class COHORT_API HashedCrossing : public LayerHandle {
 public:
  // Errors: InvalidArgument (num_bins below 1, an unknown output_mode, a dtype that does not fit).
  explicit HashedCrossing(int64_t num_bins, HashedCrossingOptions options = {});
};

}  // namespace cohort::keras::layers
