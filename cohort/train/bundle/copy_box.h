// Copies what two boxes of one tensor have in common.
#pragma once

#include <cstdint>

#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::internal {

struct CopyBox {
  const void* from = nullptr;  // the elements of from_slice, row-major
  train::TensorSlice from_slice;
  void* to = nullptr;  // those of to_slice
  train::TensorSlice to_slice;
  uint64_t item_bytes = 0;
};

// Whether they have an element in common (a tensor of rank 0 is one element).
bool boxes_meet(const train::TensorSlice& a, const train::TensorSlice& b);
// Both slices are of one rank.
void copy_box(const CopyBox& copy);

}  // namespace cohort::internal
