// Tensors in the probe's JSON: {"dtype": "float32", "shape": [2, 3], "values": [...]}. The dtype of
// strings is "string". A RaggedTensor is {"ragged": the tensor of its values, "row_splits": [...]}; a
// tuple is a list, a dict an object.
#pragma once

#include <cohort/core/structure/structure.h>
#include <cohort/core/structure/tensor.h>

#include "probe.h"

namespace cohort::interop {

// "dtype" may be missing: float32. An undefined tensor for null.
// Errors: InvalidArgument (another dtype than float32, float64, int32, int64 and uint8).
Tensor tensor_of(const Json& json);
Json json_of(const Tensor& tensor);

Structure structure_of(const Json& json);
// Of a leaf or a RaggedTensor.
Json json_of(const Structure& structure);

}  // namespace cohort::interop
