// The common part of iterators over one input that count its elements.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cohort/data/iteration/indexed.h"
#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

// Runs `read`, which asks for `n` elements and returns how many it got, and adds that number to
// `index`; adds `n` if `read` throws.
template <class Read>
int64_t read_counted(int64_t& index, int64_t n, const Read& read) {
  int64_t count = n;
  try {
    count = read();
  } catch (...) {
    index += n;
    throw;
  }
  index += count;
  return count;
}

// Its state is the count and the input's state.
class CountingIterator : public DataIterator {
 public:
  explicit CountingIterator(std::unique_ptr<DataIterator> input) : input_(std::move(input)) {}

  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    index_ = 0;
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("index", index_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    index_ = state.get_int("index", 0, kMostElements);
    input_->restore(state.child("input"));
  }

 protected:
  bool read(Structure& out) {
    return read_counted(index_, 1, [&] { return input_->next(out); }) > 0;
  }
  int64_t read_block(int64_t n, Structure& out) {
    return read_counted(index_, n, [&] { return input_->next_block(n, out); });
  }
  int64_t pass_over(int64_t n) {
    const int64_t skipped = input_->skip(n);
    index_ += skipped;
    return skipped;
  }

  const std::unique_ptr<DataIterator> input_;
  int64_t index_ = 0;  // of the input's next element
};

}  // namespace cohort::internal
