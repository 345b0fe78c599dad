// Whether boxes make up a tensor: every element in one of them, none in two.
//
//   BoxCover cover({4, 3});
//   cover.add({{0, 0}, {3, 3}});
//   cover.add({{3, 0}, {1, 3}});
//   cover.is_exact();                  // true
//
// Comparing all pairs would take minutes for the 100'000 boxes of a hostile file, and counting
// elements misses an overlap beside a gap of the same size. So elements are weighed. An element's
// weight is a product of random numbers, one for its place along each dimension; the weight of a
// box is then a product of one sum per dimension, which random running sums give as a difference.
// If the boxes are exact, their weights add up to the tensor's. If not, the two sides are different
// polynomials of the random numbers, which agree at a random point with a probability of rank/2^61
// at most (Schwartz and Zippel).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::internal {

// Time: in proportion to the rank for each box. Thread safety: none.
class BoxCover {
 public:
  // No dimension is negative.
  explicit BoxCover(std::vector<int64_t> shape);
  // A box within the tensor; it may be empty.
  void add(const train::TensorSlice& box);
  // Whether the boxes added so far cover the whole, each place once. The answer is wrong with a
  // probability below 2^-53, which no file can raise.
  bool is_exact() const;

 private:
  uint64_t place_sum(size_t dimension, int64_t place) const;
  uint64_t weight(const train::TensorSlice& box) const;

  const std::vector<int64_t> shape_;
  const uint64_t seed_;
  uint64_t total_ = 0;
};

}  // namespace cohort::internal
