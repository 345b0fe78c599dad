// What parse_example and parse_sequence_example read of records: which values each feature has.
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

struct FixedLenSequenceFeatureOptions {
  // Whether examples may lack the feature; they then have no rows. parse_example requires it.
  bool allow_missing = false;
  // The scalar that fills up the examples of a batch that have fewer rows. Default: 0 or "".
  std::optional<Leaf> default_value = {};
};

// A feature with any number of rows of values, each of `shape`: of an example [rows, shape..], of a
// batch [n, most rows, shape..].
struct COHORT_API FixedLenSequenceFeature {
  // `dtype`: int64 or float32.
  FixedLenSequenceFeature(std::vector<int64_t> shape, DType dtype,
                          FixedLenSequenceFeatureOptions options = {})
      : shape(std::move(shape)), dtype(dtype), options(std::move(options)) {}
  static FixedLenSequenceFeature strings(std::vector<int64_t> shape = {},
                                         FixedLenSequenceFeatureOptions options = {}) {
    FixedLenSequenceFeature feature(std::move(shape), DType::Float, std::move(options));
    feature.dtype.reset();
    return feature;
  }

  std::vector<int64_t> shape;
  std::optional<DType> dtype;  // none: strings
  FixedLenSequenceFeatureOptions options;
};

struct SparseFeatureOptions {
  // The indices of each example ascend; others are an error. False: they are sorted.
  bool already_sorted = false;
};

// A sparse tensor of numbers (sparse_tensor.h), whose indices and values are features of their own:
// of an example [size..], of a batch [n, size..].
struct COHORT_API SparseFeature {
  SparseFeature(std::string index_key, std::string value_key, DType dtype, int64_t size,
                SparseFeatureOptions options = {})
      : index_keys({std::move(index_key)}),
        value_key(std::move(value_key)),
        dtype(dtype),
        size({size}),
        options(options) {}
  // A key and a size for each dimension.
  SparseFeature(std::vector<std::string> index_keys, std::string value_key, DType dtype,
                std::vector<int64_t> size, SparseFeatureOptions options = {})
      : index_keys(std::move(index_keys)),
        value_key(std::move(value_key)),
        dtype(dtype),
        size(std::move(size)),
        options(options) {}

  std::vector<std::string> index_keys;  // of int64 features
  std::string value_key;
  DType dtype;
  std::vector<int64_t> size;
  SparseFeatureOptions options;
};

// How a list of values, or of rows, is divided into rows. `key`: an int64 feature of the example.
struct RaggedPartitions {
  struct RowSplits {
    std::string key;  // 0, the end of each row
  };
  struct RowLengths {
    std::string key;
  };
  struct RowStarts {
    std::string key;
  };
  struct RowLimits {
    std::string key;  // the end of each row
  };
  struct ValueRowIds {
    std::string key;  // the row of each value, ascending
  };
  struct UniformRowLength {
    int64_t length;
  };
  using Partition =
      std::variant<RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength>;
};

struct RaggedFeatureOptions {
  // The feature that holds the values. Default: the name of this one.
  std::string value_key = "";
  // The rows in which the values lie, the outermost first.
  std::vector<RaggedPartitions::Partition> partitions = {};
};

// A feature with any number of values, which may be divided into rows: a RaggedTensor
// (ragged_tensor.h). Without partitions an example has a tensor [values], and a batch a
// RaggedTensor of one ragged dimension; each partition makes one more. UniformRowLengths at the end
// of the list make dense dimensions of values instead.
//
//   io::RaggedFeature(int64, {.value_key = "v", .partitions = {io::RaggedFeature::RowSplits{"s"}}})
struct COHORT_API RaggedFeature : RaggedPartitions {
  // `dtype`: int64 or float32.
  explicit RaggedFeature(DType dtype, RaggedFeatureOptions options = {})
      : dtype(dtype), options(std::move(options)) {}
  static RaggedFeature strings(RaggedFeatureOptions options = {}) {
    RaggedFeature feature(DType::Float, std::move(options));
    feature.dtype.reset();
    return feature;
  }

  std::optional<DType> dtype;  // none: strings
  RaggedFeatureOptions options;
};

using ExampleFeature = std::variant<FixedLenFeature, VarLenFeature, FixedLenSequenceFeature,
                                    SparseFeature, RaggedFeature>;
using ExampleFeatures = std::vector<std::pair<std::string, ExampleFeature>>;

}  // namespace cohort::io
