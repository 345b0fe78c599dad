// Indices as vectors: the output modes of all layers of categories.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

enum class OutputMode { kInt, kOneHot, kMultiHot, kCount, kTfIdf };

// "int", "one_hot", "multi_hot" (or "binary"), "count", "tf_idf" (or "tf-idf").
// Errors: InvalidArgument (another name, or none of `allowed`, if there are any; `layer` begins the
// message).
OutputMode output_mode_of(const std::string& name, const std::string& layer,
                          std::span<const OutputMode> allowed = {});

// The name again.
std::string output_mode_name(OutputMode mode);

// The dtype of outputs: what the layer was given, or else int64 with kInt and backend::floatx()
// with others. Errors: InvalidArgument (kInt with a dtype that is no integer; a bool or complex
// one).
DType output_dtype_of(OutputMode mode, std::optional<DType> given, const std::string& layer);

struct Encoding {
  OutputMode mode = OutputMode::kOneHot;
  int64_t depth = 0;
  DType dtype = float32;
  Tensor idf_weights = {};  // with kTfIdf: [depth]
};

// Shapes: one_hot: [] -> [depth]; [n] and [n, 1] -> [n, depth]. Others: [] and [n] -> [depth];
// [n, m] -> [n, depth], one vector for the m indices of a row. indices are int64 and, on the host,
// contiguous; those outside of [0, depth) are left out. An index counts 1, or with kCount its
// weight: `weights` have the shape of the indices.
// Errors: InvalidArgument (an output would be of rank 3 or more).
Tensor encode(const Tensor& indices, const Encoding& encoding, const std::string& layer,
              const Tensor& weights = {});

// What a layer of categories makes of one leaf, or of a RaggedTensor: with kInt the indices in the
// same shape, or rows; else vectors, one for each row of a RaggedTensor. `index_of` gives int64
// indices of the shape of its leaf, which `weights` have, too. The output is on the device of
// the input.
// Errors: InvalidArgument (another structure; as encode; one_hot of a RaggedTensor).
Structure encode_inputs(const Structure& inputs, const Encoding& encoding, const std::string& layer,
                        FunctionRef<Tensor(const Leaf& leaf)> index_of, const Tensor& weights = {});

}  // namespace cohort::internal
