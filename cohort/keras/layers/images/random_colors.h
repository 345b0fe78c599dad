// Images whose brightness or contrast changes at random.
//
//   layers::RandomBrightness(0.2, {.value_range = {0, 1}});
//
// Random image layers: see random_flip.h.
// Shapes of all: [height, width, channels] or [batch, ..], any numeric dtype -> the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/images/factor.h"
#include "cohort/keras/layers/images/random_flip.h"

namespace cohort::keras::layers {

// Multiplies each channel's distance from its mean by a number from 1 - factor to 1 + factor (of a
// range: from 1 - its first number to 1 + its second), the same for all images of a batch, and
// limits the results to [0, 255].
class COHORT_API RandomContrast : public LayerHandle {
 public:
  // Errors: InvalidArgument (numbers below 0, a first one above 1).
  explicit RandomContrast(Factor factor, RandomImageOptions options = {});
};

struct RandomBrightnessOptions {
  std::array<double, 2> value_range = {0, 255};  // in which the images' numbers lie
  // See DropoutOptions::seed.
  std::optional<uint64_t> seed = std::nullopt;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Adds to each image a number of `factor` times the width of the value range, and limits the
// results to that range; one number stands for the range from its negative to it.
class COHORT_API RandomBrightness : public LayerHandle {
 public:
  // Errors: InvalidArgument (numbers outside of [-1, 1]).
  explicit RandomBrightness(Factor factor, RandomBrightnessOptions options = {});
};

}  // namespace cohort::keras::layers
