// Noise in training: added to each element, or multiplied with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct NoiseOptions {
  std::optional<uint64_t> seed = std::nullopt;  // as of Dropout
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// All of them: Shape: [..], floating -> the same; outside of training nothing changes.

// Adds normal noise of mean 0.
class COHORT_API GaussianNoise : public LayerHandle {
 public:
  // Errors: InvalidArgument (a stddev that is not finite, or below 0).
  explicit GaussianNoise(double stddev, NoiseOptions options = {});
};

// Multiplies by normal noise of mean 1 and variance rate / (1 - rate); 1 changes nothing, as in
// Keras.
class COHORT_API GaussianDropout : public LayerHandle {
 public:
  // Errors: InvalidArgument (rate outside [0, 1]).
  explicit GaussianDropout(double rate, NoiseOptions options = {});
};

struct AlphaDropoutOptions {
  Shape noise_shape = {};                       // as of Dropout
  std::optional<uint64_t> seed = std::nullopt;  // as of Dropout
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// Sets elements to what selu is far below 0, and keeps mean and variance (Klambauer et al., 2017).
class COHORT_API AlphaDropout : public LayerHandle {
 public:
  // Errors: InvalidArgument (rate outside [0, 1)).
  explicit AlphaDropout(double rate, AlphaDropoutOptions options = {});
};

}  // namespace cohort::keras::layers
