#include "cohort/data/iteration/iterator.h"

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::internal {

int64_t DataIterator::next_block(int64_t, Structure&) {
  throw InternalError("next_block was called on an iterator that has no blocks");
}

int64_t DataIterator::next_run(int64_t, Structure&) {
  throw InternalError("next_run was called on an iterator that has no runs");
}

int64_t DataIterator::pick_block(std::span<const int64_t> gaps, Structure& out) {
  if (skip(gaps[0]) < gaps[0]) return 0;
  const auto run_end =
      std::find_if(gaps.begin() + 1, gaps.end(), [](int64_t gap) { return gap > 0; });
  return next_block(run_end - gaps.begin(), out);
}

int64_t DataIterator::skip(int64_t n) {
  Structure scratch;
  for (int64_t skipped = 0; skipped < n; ++skipped) {
    try {
      if (!next(scratch)) return skipped;
    } catch (const std::exception&) {
      // An element that nobody wants may fail.
    }
  }
  return n;
}

}  // namespace cohort::internal
