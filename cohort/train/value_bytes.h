// Tensors as a checkpoint's bytes, and back.
#pragma once

#include <string_view>

#include "cohort/core/tensor.h"
#include "cohort/train/bundle_entry.h"

namespace cohort::internal {

// Errors: Unimplemented (a dtype that checkpoints cannot hold).
BundleType bundle_type(DType dtype);
// DType::Undefined for strings and what libtorch has no dtype for.
DType dtype_of(BundleType type);

// The elements of a contiguous tensor on the CPU. The view lives as long as its memory.
std::string_view bytes_of(const Tensor& tensor);

}  // namespace cohort::internal
