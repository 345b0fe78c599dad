// Images that are turned, shifted or zoomed at random, each by its own number.
//
//   layers::RandomRotation(0.1);                            // up to a tenth of a turn, either way
//   layers::RandomZoom({-0.3, 0}, {.fill_mode = "constant"});   // in, by up to 30%
//
// Random image layers: see random_flip.h.
// Shapes of all: [height, width, channels] or [batch, ..], any numeric dtype -> the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/images/factor.h"

namespace cohort::keras::layers {

struct RandomTransformOptions {
  // See image::ProjectiveTransformOptions.
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";
  // See DropoutOptions::seed.
  std::optional<uint64_t> seed = std::nullopt;
  double fill_value = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Turns each image by a number of whole turns from `factor`, counter-clockwise above 0; one number
// stands for the range from its negative to it.
class COHORT_API RandomRotation : public LayerHandle {
 public:
  // Errors: InvalidArgument (a range whose upper end is below its lower; an unknown mode).
  explicit RandomRotation(Factor factor, RandomTransformOptions options = {});
};

// Shifts each image down and to the right by parts of its height and width.
class COHORT_API RandomTranslation : public LayerHandle {
 public:
  // Errors: as RandomRotation; InvalidArgument (numbers outside of [-1, 1]).
  RandomTranslation(Factor height_factor, Factor width_factor, RandomTransformOptions options = {});
};

struct RandomZoomOptions {
  // Missing: as much as the height.
  std::optional<Factor> width_factor = std::nullopt;
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";
  std::optional<uint64_t> seed = std::nullopt;
  double fill_value = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Zooms each image out, where a number is above 0, or in.
class COHORT_API RandomZoom : public LayerHandle {
 public:
  // Errors: InvalidArgument (heights outside of [-1, 1], widths below -1; an unknown mode).
  explicit RandomZoom(Factor height_factor, RandomZoomOptions options = {});
};

}  // namespace cohort::keras::layers
