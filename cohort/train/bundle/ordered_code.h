// The key under which a part of a partitioned tensor stands in a checkpoint's index: bytes whose
// order is that of (name, slice).
#pragma once

#include <string>
#include <string_view>

#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::internal {

// The key of a slice, as TensorFlow's EncodeTensorNameSlice makes it: 0, the name, the rank, then
// start and length of each dimension. A dimension may be written as whole, then its length is -1
// here. The key begins with a zero byte, which no name does.
std::string slice_key(std::string_view name, const train::TensorSlice& slice);

// Parts of the encoding, for its tests.
void append_ordered(std::string& out, uint64_t value);
void append_ordered_signed(std::string& out, int64_t value);
void append_ordered(std::string& out, std::string_view text);

}  // namespace cohort::internal
