// What follows an element that failed within a block, and fails with it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/data/indexed.h"
#include "cohort/data/iterator.h"

namespace cohort::internal {

// Thread safety: none.
class BlockRest {
 public:
  // Passes over the `n` elements that fail with the one whose error is being handled. Where a
  // device does not answer meanwhile, that error goes on all the same, and what is left waits for
  // settle.
  void pass_over(DataIterator& input, int64_t n) {
    left_ = n;
    try {
      settle(input);
    } catch (const InputDeadlineExceeded&) {
    }
  }
  // To be called before anything is read of the input. Errors: InputDeadlineExceeded, again.
  void settle(DataIterator& input) {
    if (left_ == 0) return;
    int64_t left = std::exchange(left_, 0);  // the input may be who settles
    try {
      // Read one by one, which unlike a skip of many loses no count.
      while (left > 0 && input.DataIterator::skip(1) > 0) --left;
    } catch (const InputDeadlineExceeded&) {
      left_ = left;
      throw;
    }
  }
  bool empty() const { return left_ == 0; }
  void forget() { left_ = 0; }

  void save(IteratorState& state) const {
    if (left_ > 0) state.set_int("rest", left_);
  }
  void restore(const IteratorState& state) {
    left_ = state.has("rest") ? state.get_int("rest", 1, kInfiniteSize) : 0;
  }

 private:
  int64_t left_ = 0;
};

// Reads elements one by one until there are `n` in `elements`, or no more. Where one fails the rest
// of the `n` is passed over before its error goes on, and `elements` is empty, so that the next
// block starts where it would have. Where a device does not answer, those read so far stay in
// `elements`.
void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements, BlockRest& rest);

// Those as one block, as DataIterator::next_block gives it; returns how many.
int64_t collect_block(DataIterator& input, int64_t n, Structure& out, BlockRest& rest);

// The same elements in blocks, for those who want blocks of any input; itself where it has them.
std::unique_ptr<DataIterator> with_blocks(std::unique_ptr<DataIterator> input);

}  // namespace cohort::internal
