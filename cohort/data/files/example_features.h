// What parse_example reads of tf.Example records: which values each feature has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"

namespace cohort::io {

// A feature with a fixed number of values, given by `shape`, in every example.
struct COHORT_API FixedLenFeature {
  // `dtype`: int64 or float32.
  FixedLenFeature(std::vector<int64_t> shape, DType dtype)
      : shape(std::move(shape)), dtype(dtype) {}
  // `default_value`: the values, of that shape and dtype, for examples without the feature.
  FixedLenFeature(std::vector<int64_t> shape, DType dtype, Tensor default_value)
      : shape(std::move(shape)), dtype(dtype), default_value(std::move(default_value)) {}
  static FixedLenFeature strings(std::vector<int64_t> shape = {},
                                 std::optional<StringTensor> default_value = {}) {
    FixedLenFeature feature;
    feature.shape = std::move(shape);
    if (default_value) feature.default_value = *std::move(default_value);
    return feature;
  }

  std::vector<int64_t> shape;
  std::optional<DType> dtype;  // none: strings
  std::optional<Leaf> default_value = {};

 private:
  FixedLenFeature() = default;
};

// A feature with any number of values; none in examples without the feature.
struct COHORT_API VarLenFeature {
  explicit VarLenFeature(DType dtype) : dtype(dtype) {}
  static VarLenFeature strings() { return VarLenFeature(); }

  std::optional<DType> dtype;  // none: strings

 private:
  VarLenFeature() = default;
};

using ExampleFeature = std::variant<FixedLenFeature, VarLenFeature>;
using ExampleFeatures = std::vector<std::pair<std::string, ExampleFeature>>;

}  // namespace cohort::io
