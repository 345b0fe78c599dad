// Takes back a skip during which a device did not answer: how far it had come is not known.
#pragma once

#include <optional>
#include <utility>

#include "cohort/data/iterator.h"

namespace cohort::internal {

// Part of an iterator that passes over elements of its input. That calls `settle` before it reads,
// gives `due` as its state where there is one, and calls `clear` in rewind and restore.
class SkipUndo {
 public:
  template <class Skip>
  int64_t run(const DataIterator& iterator, const Skip& skip) {
    IteratorState before = iterator.save();
    try {
      return skip();
    } catch (const InputDeadlineExceeded&) {
      due_ = std::move(before);
      throw;
    }
  }
  // To before the skip. Restoring may miss a deadline itself: then it is still due.
  void settle(DataIterator& iterator) {
    if (!due_) return;
    IteratorState before = *std::exchange(due_, std::nullopt);
    try {
      iterator.restore(before);
    } catch (const InputDeadlineExceeded&) {
      due_ = std::move(before);
      throw;
    }
  }
  const std::optional<IteratorState>& due() const { return due_; }
  void clear() { due_.reset(); }

 private:
  std::optional<IteratorState> due_;
};

}  // namespace cohort::internal
