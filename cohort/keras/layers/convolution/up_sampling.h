// Layers that repeat the steps of sequences, the pixels of images or the voxels of volumes.
//
//   layers::UpSampling2D();                                      // doubles height and width
//   layers::UpSampling2D({1, 3}, {.interpolation = "bilinear"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct UpSampling1DOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct UpSampling2DOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  // "nearest" repeats pixels; "bilinear" draws lines between their middles. Keras's others
  // ("bicubic", ..) are Unimplemented.
  std::string interpolation = "nearest";
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct UpSampling3DOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, steps, features] -> [batch, steps * size, features], any dtype.
// Errors (constructors of all): InvalidArgument (a size below 1; data_format; interpolation).
class COHORT_API UpSampling1D : public LayerHandle {
 public:
  explicit UpSampling1D(int64_t size = 2, UpSampling1DOptions options = {});
};
// Shapes: [batch, height, width, channels] -> the same with larger images, any dtype, with
// "bilinear" floating; with "channels_first" the channels come second.
class COHORT_API UpSampling2D : public LayerHandle {
 public:
  explicit UpSampling2D(Size2D size = 2, UpSampling2DOptions options = {});
};
// The same of volumes: [batch, depth, height, width, channels].
class COHORT_API UpSampling3D : public LayerHandle {
 public:
  explicit UpSampling3D(Size3D size = 2, UpSampling3DOptions options = {});
};

}  // namespace cohort::keras::layers
