// Tensors as a checkpoint's bytes, and back.
#pragma once

#include <string_view>

#include "cohort/core/structure/tensor.h"
#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::internal {

// Errors: Unimplemented (a dtype that checkpoints cannot hold).
BundleType bundle_type(DType dtype);
// DType::Undefined for strings and what libtorch has no dtype for.
DType dtype_of(BundleType type);

// A tensor on the CPU whose elements are about to be written once: large ones lie in huge pages,
// where the system has them, since touching small ones takes longer than filling them.
Tensor empty_for_reading(at::IntArrayRef shape, DType dtype);

// The elements of a contiguous tensor on the CPU. The view lives as long as its memory.
std::string_view bytes_of(const Tensor& tensor);

}  // namespace cohort::internal
