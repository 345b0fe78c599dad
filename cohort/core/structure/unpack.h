// Elements of any number of members, bound to names:
//
//   auto [x, y, z] = unpack<3>(element);
//   for (auto [x, y, z] : unpack<3>(dataset)) ...
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

#include "cohort/core/structure/structure.h"

namespace cohort {
namespace internal {

// A range whose elements are arrays of kSize members. Refers to a range that is an lvalue.
template <size_t kSize, class Range>
class UnpackedRange {
 public:
  explicit UnpackedRange(Range&& range) : range_(std::forward<Range>(range)) {}

  template <class Cursor>
  class Iterator {
   public:
    explicit Iterator(Cursor cursor) : cursor_(std::move(cursor)) {}
    auto operator*() const { return unpack<kSize>(*cursor_); }
    Iterator& operator++() {
      ++cursor_;
      return *this;
    }
    bool operator==(std::default_sentinel_t end) const { return cursor_ == end; }

   private:
    Cursor cursor_;
  };

  auto begin() { return Iterator<decltype(range_.begin())>(range_.begin()); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Range range_;
};

}  // namespace internal

// The elements of a dataset or iterator, distributed or not, as arrays of tensors.
// Errors while reading: as for the range; InvalidArgument (another number of members; a member that
// is no tensor).
template <size_t kSize, class Range>
requires requires(Range& range) {
  { range.begin() == range.end() } -> std::convertible_to<bool>;
}
internal::UnpackedRange<kSize, Range> unpack(Range&& range) {
  return internal::UnpackedRange<kSize, Range>(std::forward<Range>(range));
}

}  // namespace cohort
