// Pooling of sequences: the maximum or mean of each window of steps, or of all steps.
//
//   layers::MaxPooling1D();                                   // halves the steps
//   layers::AveragePooling1D(3, {.strides = 1, .padding = "same"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Pooling1DOptions {
  std::optional<int64_t> strides = std::nullopt;  // missing: the pool size
  std::string padding = "valid";                  // or "same"; steps added by it never count
  std::string data_format = "channels_last";      // or "channels_first"
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
struct GlobalPooling1DOptions {
  std::string data_format = "channels_last";  // or "channels_first"
  bool keepdims = false;                      // keep the pooled dimensions, with size 1
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, steps, features] -> [batch, new_steps, features], floating; with "channels_first"
// the features come second.
// Errors (constructors of all): InvalidArgument (a size or stride below 1; padding; data_format).
class COHORT_API MaxPooling1D : public LayerHandle {
 public:
  explicit MaxPooling1D(int64_t pool_size = 2, Pooling1DOptions options = {});
};
class COHORT_API AveragePooling1D : public LayerHandle {
 public:
  explicit AveragePooling1D(int64_t pool_size = 2, Pooling1DOptions options = {});
};

// The mean over the steps. Shapes: [batch, steps, features] -> [batch, features], floating.
class COHORT_API GlobalAveragePooling1D : public LayerHandle {
 public:
  explicit GlobalAveragePooling1D(GlobalPooling1DOptions options = {});
};
// The maximum over the steps; the same shapes.
class COHORT_API GlobalMaxPooling1D : public LayerHandle {
 public:
  explicit GlobalMaxPooling1D(GlobalPooling1DOptions options = {});
};

}  // namespace cohort::keras::layers
