// Images that are mirrored, or seen in part, at random.
//
//   keras::Sequential augment({layers::RandomFlip("horizontal"), layers::RandomCrop(200, 200)});
//
// Random image layers draw in training, and where a call outside of every model does not say
// whether it is one, as in Keras. Each replica draws its own; in a pipeline, see augmentation.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct RandomImageOptions {
  // See DropoutOptions::seed.
  std::optional<uint64_t> seed = std::nullopt;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Mirrors half of the images in each direction of `mode`: "horizontal" (left to right), "vertical",
// "horizontal_and_vertical".
// Shapes: [height, width, channels] or [batch, ..], any numeric dtype -> the same.
class COHORT_API RandomFlip : public LayerHandle {
 public:
  // Errors: InvalidArgument (an unknown mode).
  explicit RandomFlip(std::string mode = "horizontal_and_vertical",
                      RandomImageOptions options = {});
};

// A part at a random place, the same for all images of a batch. Outside of training, and of smaller
// images, the largest middle part of that form, resized.
// Shapes: [height, width, channels] or [batch, ..], any numeric dtype -> the same of the new size.
class COHORT_API RandomCrop : public LayerHandle {
 public:
  // Errors: InvalidArgument (a size below 1).
  RandomCrop(int64_t height, int64_t width, RandomImageOptions options = {});
};

}  // namespace cohort::keras::layers
