// Rows of several examples, which have different numbers of them, as one dense tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"

namespace cohort::internal {

// Padded values take no more.
inline constexpr uint64_t kMostPaddedBytes = uint64_t{1} << 30;

// `values`: the rows of all examples, one after another, lengths[i] of example i. `padding`: a
// scalar of their kind and dtype. Shapes: [sum of lengths, ..] -> [examples, longest, ..].
// Errors: ResourceExhausted (more than kMostPaddedBytes).
Leaf pad_rows(const Leaf& values, const std::vector<int64_t>& lengths, const Leaf& padding);

// 0 or "" unless the feature says otherwise.
// Errors: InvalidArgument (its default is no scalar of its dtype).
Leaf padding_of(const io::FixedLenSequenceFeature& feature);

// 0 or "" of the kind and dtype of `leaf`.
Leaf zero_like(const Leaf& leaf);

}  // namespace cohort::internal
