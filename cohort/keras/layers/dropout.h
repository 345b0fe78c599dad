// Dropout (Srivastava et al., 2014): in training each element is 0 with probability `rate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct DropoutOptions {
  // Missing: the generator of the calling replica. Given: each replica draws from its own stream of
  // this seed, whose position checkpoints hold.
  std::optional<uint64_t> seed = std::nullopt;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// What is kept is scaled by 1 / (1 - rate); outside of training nothing changes.
// Shape: [..], floating -> the same.
class COHORT_API Dropout : public LayerHandle {
 public:
  // Errors: InvalidArgument (rate outside [0, 1]).
  explicit Dropout(double rate, DropoutOptions options = {});
};

}  // namespace cohort::keras::layers
