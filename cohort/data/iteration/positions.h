// Positions in a sequence of elements that can be read anywhere.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cohort::internal {

// The size of an infinite sequence.
inline constexpr int64_t kInfiniteSize = std::numeric_limits<int64_t>::max();

// No saved state is further than this: counting on from a larger number could overflow.
inline constexpr int64_t kMostElements = kInfiniteSize - (int64_t{1} << 40);

// scale * position + offset; only `offset` may be negative.
// Errors: OutOfRange (the result exceeds int64, since an element too far into an infinite sequence
// was requested), which interrupts the pass.
int64_t scaled_position(int64_t position, int64_t scale, int64_t offset);

// Some positions of a sequence: either first, first + stride, ..., or a list. A view: the list must
// outlive it.
class Positions {
 public:
  static Positions run(int64_t first, int64_t count, int64_t stride = 1) {
    Positions positions;
    positions.first_ = first;
    positions.stride_ = stride;
    positions.count_ = count;
    return positions;
  }
  static Positions list(std::span<const int64_t> values) {
    Positions positions;
    positions.values_ = values.data();
    positions.count_ = static_cast<int64_t>(values.size());
    return positions;
  }

  bool is_run() const { return values_ == nullptr; }
  int64_t size() const { return count_; }
  int64_t stride() const { return stride_; }  // of a run
  int64_t operator[](int64_t i) const {
    return values_ == nullptr ? first_ + i * stride_ : values_[i];
  }

  // Applies scaled_position to each position, with its errors; a list is written into `scratch`.
  Positions scaled(int64_t scale, int64_t offset, std::vector<int64_t>& scratch) const;
  Positions shifted(int64_t offset, std::vector<int64_t>& scratch) const {
    return scaled(1, offset, scratch);
  }

 private:
  Positions() = default;
  const int64_t* values_ = nullptr;
  int64_t first_ = 0;
  int64_t stride_ = 1;
  int64_t count_ = 0;
};

}  // namespace cohort::internal
