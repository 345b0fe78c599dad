#include "cohort/data/iteration/indexed.h"

#include <algorithm>

#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {

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
