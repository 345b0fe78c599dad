// Pooling of volumes: the maximum or mean of each window, or of the whole volume.
//
//   layers::MaxPooling3D();                                   // halves depth, height and width
//   layers::AveragePooling3D({1, 2, 2}, {.padding = "same"});
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Pooling3DOptions {
  std::optional<Size3D> strides = std::nullopt;  // missing: the pool size
  std::string padding = "valid";                 // or "same"; voxels added by it never count
  std::string data_format = "channels_last";     // or "channels_first"
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct GlobalPooling3DOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  bool keepdims = false;                      // keep the pooled dimensions, with size 1
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, depth, height, width, channels] -> [batch, .., channels], floating; with
// "channels_first" the channels come second.
// Errors (constructors of all): InvalidArgument (a size or stride below 1; padding; data_format).
class COHORT_API MaxPooling3D : public LayerHandle {
 public:
  explicit MaxPooling3D(Size3D pool_size = 2, Pooling3DOptions options = {});
};
class COHORT_API AveragePooling3D : public LayerHandle {
 public:
  explicit AveragePooling3D(Size3D pool_size = 2, Pooling3DOptions options = {});
};

// Shapes: [batch, depth, height, width, channels] -> [batch, channels], floating.
class COHORT_API GlobalAveragePooling3D : public LayerHandle {
 public:
  explicit GlobalAveragePooling3D(GlobalPooling3DOptions options = {});
};
class COHORT_API GlobalMaxPooling3D : public LayerHandle {
 public:
  explicit GlobalMaxPooling3D(GlobalPooling3DOptions options = {});
};

}  // namespace cohort::keras::layers
