// Layers that add zeros around sequences, images and volumes, or cut their borders off.
//
//   layers::ZeroPadding2D({{0, 1}, {0, 1}});   // a row below and a column on the right
//   layers::Cropping2D(2);                     // two pixels less on each side
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/convolution/margins.h"

namespace cohort::keras::layers {

struct Margin1DOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct MarginOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes of all: [batch, steps, features], [batch, height, width, channels], [batch, depth, height,
// width, channels], or with "channels_first" the channels second, any dtype -> the same with other
// sizes of the spatial axes.
// Errors (constructors of all): InvalidArgument (a number below 0; data_format).
class COHORT_API ZeroPadding1D : public LayerHandle {
 public:
  explicit ZeroPadding1D(Margin padding = 1, Margin1DOptions options = {});
};
class COHORT_API ZeroPadding2D : public LayerHandle {
 public:
  explicit ZeroPadding2D(Margins2D padding = 1, MarginOptions options = {});
};
class COHORT_API ZeroPadding3D : public LayerHandle {
 public:
  explicit ZeroPadding3D(Margins3D padding = 1, MarginOptions options = {});
};

// Errors (calls): InvalidArgument (nothing would be left).
class COHORT_API Cropping1D : public LayerHandle {
 public:
  explicit Cropping1D(Margin cropping = 1, Margin1DOptions options = {});
};
class COHORT_API Cropping2D : public LayerHandle {
 public:
  explicit Cropping2D(Margins2D cropping = 0, MarginOptions options = {});
};
class COHORT_API Cropping3D : public LayerHandle {
 public:
  explicit Cropping3D(Margins3D cropping = 1, MarginOptions options = {});
};

}  // namespace cohort::keras::layers
