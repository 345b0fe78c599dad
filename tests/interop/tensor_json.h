// Tensors in the probe's JSON: {"dtype": "float32", "shape": [2, 3], "values": [...]}.
#pragma once

#include <cohort/core/structure/tensor.h>

#include "probe.h"

namespace cohort::interop {

// "dtype" may be missing: float32. An undefined tensor for null.
// Errors: InvalidArgument (another dtype than float32, float64 and int64).
Tensor tensor_of(const Json& json);
Json json_of(const Tensor& tensor);

}  // namespace cohort::interop
