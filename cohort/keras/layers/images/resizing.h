// Images of one size.
//
//   layers::Resizing(224, 224, {.crop_to_aspect_ratio = true});
//   layers::CenterCrop(200, 200);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct ResizingOptions {
  // A method of image::resize; "nearest" keeps every number.
  std::string interpolation = "bilinear";
  // Crops the middle part that has the new form, instead of changing the form of what is seen.
  bool crop_to_aspect_ratio = false;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [height, width, channels] or [batch, ..], any numeric dtype -> the same of the new size.
class COHORT_API Resizing : public LayerHandle {
 public:
  // Errors: InvalidArgument (a size below 1, an unknown method).
  Resizing(int64_t height, int64_t width, ResizingOptions options = {});
};

struct CenterCropOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// The middle of the images; of smaller ones the largest part of that form, resized.
// Shapes: as Resizing.
class COHORT_API CenterCrop : public LayerHandle {
 public:
  // Errors: InvalidArgument (a size below 1).
  CenterCrop(int64_t height, int64_t width, CenterCropOptions options = {});
};

}  // namespace cohort::keras::layers
