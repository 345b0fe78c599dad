#include "cohort/data/nodes/groups/window_groups.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/indexed.h"

namespace cohort::internal {
namespace {

// More of them make more states to save, fewer let a restore pass over more.
constexpr int64_t kStretch = 256;

void append_group(std::string& out, const WindowGroup& group) {
  append_signed_varint(out, group.key);
  append_varint(out, static_cast<uint64_t>(group.size));
  append_varint(out, group.elements.size());
  int64_t last = -1;
  for (const WaitingElement& waiting : group.elements) {
    append_varint(out, static_cast<uint64_t>(waiting.index - last));
    last = waiting.index;
  }
}

[[noreturn]] void fail_as_damaged() {
  throw DataLossError(
      "the iterator state of groups of elements is damaged: numbers are out of range");
}

// `index`: of the input's next element.
WindowGroup take_group(std::string_view& bytes, int64_t index) {
  WindowGroup group;
  group.key = take_signed_varint(bytes);
  const uint64_t size = take_varint(bytes), count = take_varint(bytes);
  if (size < 1 || size > static_cast<uint64_t>(kMostElements) || count < 1 || count > size ||
      count > bytes.size()) {
    fail_as_damaged();
  }
  group.size = static_cast<int64_t>(size);
  int64_t last = -1;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t gap = take_varint(bytes);
    if (gap < 1 || gap > static_cast<uint64_t>(index - 1 - last)) fail_as_damaged();
    last += static_cast<int64_t>(gap);
    group.elements.push_back({last, Structure()});
  }
  return group;
}

}  // namespace

void WindowGroups::before_element(DataIterator& input, int64_t index) {
  if (!stretches_.empty()) {
    if (index < stretches_.back().first + kStretch) return;
    if (stretches_.back().waiting == 0) stretches_.pop_back();
  }
  stretches_.push_back({index, std::make_shared<const IteratorState>(input.save())});
}

WindowGroup WindowGroups::take(Groups::iterator group) {
  WindowGroup taken = std::move(group->second);
  groups_.erase(group);
  saved_.reset();
  return taken;
}

void WindowGroups::release(const WindowGroup& group) {
  for (const WaitingElement& waiting : group.elements) {
    auto stretch = std::upper_bound(
        stretches_.begin(), stretches_.end(), waiting.index,
        [](int64_t index, const Stretch& candidate) { return index < candidate.first; });
    --stretch;
    if (--stretch->waiting == 0 && stretch + 1 != stretches_.end()) stretches_.erase(stretch);
  }
  saved_.reset();
}

void WindowGroups::clear() {
  groups_.clear();
  stretches_.clear();
  saved_.reset();
}

IteratorState::Child WindowGroups::save(const WindowGroup* open) {
  if (saved_) return saved_;
  std::string groups;
  append_varint(groups, groups_.size() + (open ? 1 : 0));
  if (open) append_group(groups, *open);
  for (const auto& [key, group] : groups_) append_group(groups, group);
  IteratorState state;
  state.set_bytes("groups", std::move(groups));
  int64_t count = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.waiting == 0) continue;
    IteratorState child;
    child.set_int("first", stretch.first);
    child.set_child("before", stretch.before);
    state.set_child(str("stretch ", count++), std::move(child));
  }
  state.set_int("open", open != nullptr);
  state.set_int("stretches", count);
  saved_ = std::make_shared<const IteratorState>(std::move(state));
  return saved_;
}

std::optional<WindowGroup> WindowGroups::restore(const IteratorState& state, DataIterator& input,
                                                 int64_t index) {
  clear();
  std::string_view bytes = state.get_bytes("groups");
  const bool is_open = state.get_int("open", 0, 1) == 1;
  const uint64_t count = take_varint(bytes);
  if (count > bytes.size() || (is_open && count == 0)) fail_as_damaged();
  std::optional<WindowGroup> open;
  for (uint64_t i = 0; i < count; ++i) {
    WindowGroup group = take_group(bytes, index);
    if (is_open && i == 0) {
      open = std::move(group);
    } else {
      const int64_t key = group.key;
      if (!groups_.emplace(key, std::move(group)).second) fail_as_damaged();
    }
  }
  const int64_t stretches = state.get_int("stretches", 0, kMostElements);
  for (int64_t i = 0; i < stretches; ++i) {
    const IteratorState& child = state.child(str("stretch ", i));
    const int64_t after = stretches_.empty() ? 0 : stretches_.back().first + 1;
    stretches_.push_back({child.get_int("first", after, index), child.shared_child("before")});
  }
  std::vector<WaitingElement*> elements;
  const auto add = [&](WindowGroup& group) {
    for (WaitingElement& waiting : group.elements) elements.push_back(&waiting);
  };
  if (open) add(*open);
  for (auto& [key, group] : groups_) add(group);
  read_again(input, std::move(elements), index);
  return open;
}

void WindowGroups::read_again(DataIterator& input, std::vector<WaitingElement*> elements,
                              int64_t index) {
  std::sort(elements.begin(), elements.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  auto next = elements.begin();
  for (Stretch& stretch : stretches_) {
    input.restore(*stretch.before);
    int64_t position = stretch.first;
    const int64_t end = std::min(index, stretch.first + kStretch);
    for (; next != elements.end() && (*next)->index < end; ++next) {
      const int64_t gap = (*next)->index - position;
      if (gap < 0) fail_as_damaged();
      if (input.skip(gap) < gap || !input.next((*next)->element)) {
        throw DataLossError(str("element ", (*next)->index, " of the input, which the iterator ",
                                "state is of, is no longer there"));
      }
      position = (*next)->index + 1;
      ++stretch.waiting;
    }
  }
  if (next != elements.end()) fail_as_damaged();
}

}  // namespace cohort::internal
