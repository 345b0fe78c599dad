// Dropout (Srivastava et al., 2014): in training each element is 0 with probability `rate`; or each
// channel of a sequence, image or volume is, all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct DropoutOptions {
  // The shape of what is drawn, of the input's rank: along sizes of 1 all elements share their
  // fate. kUnknownDim: the input's size. Empty: each element has its own.
  Shape noise_shape = {};
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
  // Errors: InvalidArgument (rate outside [0, 1]; in a call, a noise_shape that does not fit).
  explicit Dropout(double rate, DropoutOptions options = {});
};

struct SpatialDropout1DOptions {
  std::optional<uint64_t> seed = std::nullopt;  // as of Dropout
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// Drops features of a sequence, at all steps.
// Shape: [batch, steps, features], floating -> the same. Errors: as Dropout.
class COHORT_API SpatialDropout1D : public LayerHandle {
 public:
  explicit SpatialDropout1D(double rate, SpatialDropout1DOptions options = {});
};

struct SpatialDropoutOptions {
  std::string data_format =
      "channels_last";  // or "channels_first"; saved models lack it, as Keras's
  std::optional<uint64_t> seed = std::nullopt;  // as of Dropout
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// Drops channels of an image, at all pixels.
// Shape: [batch, height, width, channels], floating -> the same.
// Errors: as Dropout, and InvalidArgument (data_format).
class COHORT_API SpatialDropout2D : public LayerHandle {
 public:
  explicit SpatialDropout2D(double rate, SpatialDropoutOptions options = {});
};
// The same of volumes: [batch, depth, height, width, channels].
class COHORT_API SpatialDropout3D : public LayerHandle {
 public:
  explicit SpatialDropout3D(double rate, SpatialDropoutOptions options = {});
};

}  // namespace cohort::keras::layers
