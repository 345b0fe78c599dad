#include "cohort/data/iteration/indexed.h"

#include <algorithm>

#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/iteration/stacking.h"

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

void IndexedData::read_block(const Positions& positions, Structure& out) {
  std::vector<Structure> elements(static_cast<size_t>(positions.size()));
  for (int64_t i = 0; i < positions.size(); ++i) read(positions[i], elements[i]);
  out = stack_elements(elements, positions);
}

bool IndexedIterator::next(Structure& out) {
  if (position_ >= data_->size()) return false;
  data_->read(position_++, out);
  return true;
}

int64_t IndexedIterator::next_block(int64_t n, Structure& out) {
  const int64_t count = std::min(n, data_->size() - position_);
  if (count == 0) return 0;
  const int64_t first = position_;
  position_ += count;
  data_->read_block(Positions::run(first, count), out);
  return count;
}

int64_t IndexedIterator::skip(int64_t n) {
  const int64_t count = std::min(n, data_->size() - position_);
  position_ += count;
  return count;
}

IteratorState IndexedIterator::save() {
  IteratorState state;
  state.set_int("position", position_);
  return state;
}

void IndexedIterator::restore(const IteratorState& state) {
  position_ = state.get_int("position", 0, data_->size());
}

}  // namespace cohort::internal
