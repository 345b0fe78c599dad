// Pooling of images: the maximum or mean of each window, or of the whole image.
//
//   layers::MaxPooling2D();                                   // halves height and width
//   layers::AveragePooling2D(3, {.strides = 1, .padding = "same"});
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Pooling2DOptions {
  std::optional<Size2D> strides = std::nullopt;  // missing: the pool size
  std::string padding = "valid";                 // or "same"; pixels added by it never count
  std::string data_format = "channels_last";     // or "channels_first"
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct GlobalPooling2DOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  bool keepdims = false;                      // keep the pooled dimensions, with size 1
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, height, width, channels] -> [batch, new_height, new_width, channels], floating;
// with "channels_first" the channels come second.
// Errors (constructors of all): InvalidArgument (a size or stride below 1; padding; data_format).
class COHORT_API MaxPooling2D : public LayerHandle {
 public:
  explicit MaxPooling2D(Size2D pool_size = 2, Pooling2DOptions options = {});
};
class COHORT_API AveragePooling2D : public LayerHandle {
 public:
  explicit AveragePooling2D(Size2D pool_size = 2, Pooling2DOptions options = {});
};

// Shapes: [batch, height, width, channels] -> [batch, channels], floating.
class COHORT_API GlobalAveragePooling2D : public LayerHandle {
 public:
  explicit GlobalAveragePooling2D(GlobalPooling2DOptions options = {});
};
class COHORT_API GlobalMaxPooling2D : public LayerHandle {
 public:
  explicit GlobalMaxPooling2D(GlobalPooling2DOptions options = {});
};

}  // namespace cohort::keras::layers
