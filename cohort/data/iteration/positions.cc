#include "cohort/data/iteration/positions.h"

#include "cohort/core/text.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::internal {

int64_t scaled_position(int64_t position, int64_t scale, int64_t offset) {
  int64_t scaled = 0;
  if (!__builtin_mul_overflow(position, scale, &scaled) &&
      !__builtin_add_overflow(scaled, offset, &scaled) && scaled < kInfiniteSize) {
    return scaled;
  }
  of_pass([&] {
    throw OutOfRangeError(str("element ", position, " of an endless dataset comes from element ",
                              scale, " * ", position, " + ", offset,
                              " of another, which is beyond ", kInfiniteSize,
                              "; skip, shard or batch less of it"));
  });
  return 0;
}

Positions Positions::scaled(int64_t scale, int64_t offset, std::vector<int64_t>& scratch) const {
  if (is_run()) {
    if (count_ == 0) return run(0, 0);
    const int64_t first = scaled_position(first_, scale, offset);
    if (count_ == 1) return run(first, 1);
    scaled_position((*this)[count_ - 1], scale, offset);  // then all between are there too
    return run(first, count_, stride_ * scale);
  }
  scratch.resize(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) scratch[i] = scaled_position(values_[i], scale, offset);
  return list(scratch);
}

}  // namespace cohort::internal
