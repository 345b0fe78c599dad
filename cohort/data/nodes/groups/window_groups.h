// The elements that wait in their groups until a window is whole.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

struct WaitingElement {
  int64_t index;  // in the input
  Structure element;
};

struct WindowGroup {
  int64_t key = 0;
  int64_t size = 0;  // of a whole window
  std::vector<WaitingElement> elements;
};

// A state holds the places of the elements, not the elements: the input's state at the beginning of
// each stretch of kStretch of its elements of which some still wait, and their keys. A restore
// reads those again and passes over the ones between.
// Thread safety: none.
class WindowGroups {
 public:
  // Before element `index` of the input is read.
  void before_element(DataIterator& input, int64_t index);
  // Puts it into the group of its key, which `size` (asked of a new group) makes. Returns the group
  // if its window is whole.
  template <class Size>
  std::optional<WindowGroup> add(int64_t key, WaitingElement element, const Size& size) {
    auto found = groups_.find(key);
    if (found == groups_.end()) {
      found = groups_.emplace(key, WindowGroup{key, size(), {}}).first;
    }
    ++stretches_.back().waiting;
    saved_.reset();
    found->second.elements.push_back(std::move(element));
    if (std::ssize(found->second.elements) < found->second.size) return std::nullopt;
    return take(found);
  }
  bool empty() const { return groups_.empty(); }
  // The group of the least key.
  WindowGroup take_first() { return take(groups_.begin()); }
  // The elements of a group that was taken are not needed any more.
  void release(const WindowGroup& group);

  void clear();
  // Includes those of `open`, which was taken and not released.
  IteratorState::Child save(const WindowGroup* open);
  // Reads the elements again, and leaves the input somewhere.
  // Errors: DataLoss (they are not there).
  std::optional<WindowGroup> restore(const IteratorState& state, DataIterator& input,
                                     int64_t index);

 private:
  struct Stretch {
    int64_t first;
    IteratorState::Child before;
    int64_t waiting = 0;
  };
  using Groups = std::map<int64_t, WindowGroup>;

  WindowGroup take(Groups::iterator group);
  void read_again(DataIterator& input, std::vector<WaitingElement*> elements, int64_t index);

  Groups groups_;
  std::deque<Stretch> stretches_;
  IteratorState::Child saved_;  // until something changes
};

}  // namespace cohort::internal
