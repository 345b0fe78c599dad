// Reads a dataset, knows its position, and can be restored to it.
//
//   auto iterator = dataset.iterator();
//   while (auto element = iterator.next()) train(*element);
//   std::string place = iterator.state().serialize();
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/optional.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/state.h"

namespace cohort::internal {
class DataNode;
using DataNodePtr = std::shared_ptr<const DataNode>;
class DatasetReader;
struct IteratorContext;
}  // namespace cohort::internal

namespace cohort::data {

class ElementCursor;

// Movable, not copyable; a moved-from iterator can only be assigned to or destroyed.
// Thread safety: none: next, state and restore from one thread at a time, else FailedPrecondition;
// not in a child of fork (FailedPrecondition). Destroying it stops its threads, each after at most
// one element.
class COHORT_API DatasetIterator {
 public:
  DatasetIterator(internal::DataNodePtr root, const internal::IteratorContext& context);
  ~DatasetIterator();
  DatasetIterator(DatasetIterator&&) noexcept;
  DatasetIterator& operator=(DatasetIterator&&) noexcept;
  DatasetIterator(const DatasetIterator&) = delete;
  DatasetIterator& operator=(const DatasetIterator&) = delete;

  // The next element; nullopt at the end.
  // Errors: what reading or user functions throw; the following call then returns the element after
  // the one that failed. If a file does not answer within its read_timeout, it is a
  // DeadlineExceeded that consumes nothing: the following call waits for the same element again.
  std::optional<Structure> next();
  // The next element, as next. Errors: also OutOfRange at the end.
  Structure get_next();
  Optional<Structure> get_next_as_optional() { return next(); }

  // See Dataset::element_spec.
  StructureSpec element_spec() const;

  // The position: which elements follow, in which order. Size and time are bounded by the buffers,
  // and small without them; docs/data.md has figures.
  IteratorState state() const;
  // Goes to the position at which state() was called, in this or another process; the same elements
  // follow in the same order. Reads at most the elements that were in shuffle buffers.
  // Errors: InvalidArgument (another pipeline: names the first node that differs), DataLoss (the
  // state is not possible); the iterator's position is then unchanged.
  void restore(const IteratorState& state);

  ElementCursor begin();
  std::default_sentinel_t end() const { return {}; }

  // The part that keeps its address when the iterator is moved: for checkpoints.
  const std::shared_ptr<internal::DatasetReader>& reader() const { return reader_.pointer(); }

 private:
  internal::Handle<internal::DatasetReader, "DatasetIterator"> reader_;
};

// The iterator of a range-for loop: an input iterator.
class COHORT_API ElementCursor {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Structure;
  using difference_type = std::ptrdiff_t;
  using reference = const Structure&;

  explicit ElementCursor(DatasetIterator iterator);
  // Does not own `iterator`, which must outlive it.
  explicit ElementCursor(DatasetIterator* iterator);

  const Structure& operator*() const { return *element_; }
  const Structure* operator->() const { return &*element_; }
  ElementCursor& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !element_.has_value(); }

 private:
  internal::Handle<DatasetIterator, "dataset's range-for iterator"> iterator_;
  std::optional<Structure> element_;
};

}  // namespace cohort::data
