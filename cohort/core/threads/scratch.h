// A list that is needed for the length of a call, in memory that the thread keeps for the next one.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

namespace cohort::internal {

// The list is empty at first. `Purpose` tells lists apart that one call needs side by side. If a
// call is inside of another of the same kind, the inner one takes memory of its own.
template <class T, class Purpose>
class Scratch {
 public:
  Scratch() { values_.swap(kept()); }
  ~Scratch() {
    values_.clear();
    values_.swap(kept());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::vector<T>& operator*() { return values_; }
  std::vector<T>* operator->() { return &values_; }

  // The elements, moved into a list of just their size.
  std::vector<T> take() {
    return {std::make_move_iterator(values_.begin()), std::make_move_iterator(values_.end())};
  }

 private:
  static std::vector<T>& kept() {
    thread_local std::vector<T> memory;
    return memory;
  }

  std::vector<T> values_;
};

}  // namespace cohort::internal
