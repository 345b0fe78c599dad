// Indices as vectors: the output modes of the lookup layers.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

enum class OutputMode { kInt, kOneHot, kMultiHot, kCount, kTfIdf };

// "int", "one_hot", "multi_hot" (or "binary"), "count", "tf_idf" (or "tf-idf").
// Errors: InvalidArgument (another name; `layer` begins the message).
OutputMode output_mode_of(const std::string& name, const std::string& layer);

// The name again.
std::string output_mode_name(OutputMode mode);

struct Encoding {
  OutputMode mode = OutputMode::kOneHot;  // not kInt
  int64_t depth = 0;
  DType dtype = float32;
  Tensor idf_weights = {};  // with kTfIdf: [depth]
};

// Shapes: one_hot: [] -> [depth]; [n] and [n, 1] -> [n, depth]. Others: [] and [n] -> [depth];
// [n, m] -> [n, depth], one vector for the m indices of a row. indices are int64 and contiguous;
// those outside of [0, depth) are left out.
// Errors: InvalidArgument (an output would be of rank 3 or more).
Tensor encode(const Tensor& indices, const Encoding& encoding, const std::string& layer);

}  // namespace cohort::internal
