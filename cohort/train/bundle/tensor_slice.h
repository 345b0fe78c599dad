// A box within a tensor: what one part of a partitioned variable holds of the whole.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort::train {

// Rows [start[d], start[d] + length[d]) of every dimension d of the whole tensor.
struct TensorSlice {
  std::vector<int64_t> start;
  std::vector<int64_t> length;

  bool operator==(const TensorSlice&) const = default;
};

}  // namespace cohort::train
