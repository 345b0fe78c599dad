// How a node's elements are read: one at a time, or as blocks of many.
//
// A block is a run of consecutive elements stacked into one structure, each leaf with a new
// dimension 0. In pipelines of small records, blocks avoid the cost per element: a batch above
// from_tensor_slices is one view, above a shuffle one gather, above a scalar map one loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/state.h"

namespace cohort::internal {

struct IteratorContext {
  // The number of this pass over the data, for stages that differ between passes (shuffles).
  uint64_t epoch = 0;
  // The number of the next pass over the same dataset, which a restored state sets; may be null.
  std::shared_ptr<std::atomic<uint64_t>> passes = nullptr;
  // Only the form of an element is wanted: stages leave out buffers and threads.
  bool probing = false;
  // The number of the worker that reads, for stages that differ between workers (random maps).
  uint64_t worker = 0;
  // Whether parallel stages without an option of their own keep the order of their input.
  bool deterministic = true;
  // Whether they keep it even if their option says otherwise: set by stages above them that read
  // elements again, or rely on their positions.
  bool keep_order = false;
  // Set to true by a stage that does not keep the order; may be null.
  std::shared_ptr<std::atomic<bool>> unordered = nullptr;

  IteratorContext keeping_order() const {
    IteratorContext context = *this;
    context.keep_order = true;
    return context;
  }
  // Whether a stage with this option keeps the order.
  bool is_deterministic(const std::optional<bool>& stage) const {
    const bool ordered = keep_order || stage.value_or(deterministic);
    if (!ordered && unordered) *unordered = true;
    return ordered;
  }
};

// An element that fails with a std::exception is consumed: the next call returns the one after it.
// After a PassInterrupted (pass_interrupted.h), or an error of restore, only rewind and restore may
// be called.
// Thread safety: none.
class DataIterator {
 public:
  virtual ~DataIterator() = default;

  // Puts the next element into `out` and returns true; false at the end, and at every call after
  // it.
  virtual bool next(Structure& out) = 0;

  // Whether next_block costs far less than as many calls of next, and it does no harm to read a few
  // hundred elements ahead.
  virtual bool has_blocks() const { return false; }
  // Puts up to `n` elements into `out` as one block and returns how many: 0 only at the end, but
  // fewer than `n` whenever that is easier. A block fails as a whole: if one of its elements fails,
  // all of them are consumed. `n` is positive. Only if has_blocks(); with_blocks (blocks.h) makes
  // blocks of any input.
  virtual int64_t next_block(int64_t n, Structure& out);

  // Whether there is next_run, which costs as little as next_block; has_blocks() is true then, too.
  // The elements are records: all their leaves are scalars.
  virtual bool has_runs() const { return false; }
  // A block that ends before an element that fails. If the first element fails, its error is thrown
  // and this element alone is consumed.
  virtual int64_t next_run(int64_t n, Structure& out);

  // The next block of elements that need not be adjacent: for each of `gaps` (at least one), skips
  // that many elements and takes the next. After an error only rewind and restore may be called.
  virtual int64_t pick_block(std::span<const int64_t> gaps, Structure& out);

  // Skips up to `n` elements and returns how many; fewer only at the end. Elements that would fail
  // count, and their errors are not reported.
  virtual int64_t skip(int64_t n);

  // The origin of the last element or block, for messages: "file 'a.tfrecord'"; null if unknown.
  virtual std::shared_ptr<const std::string> last_origin() const { return nullptr; }

  // Goes back to the first element, for pass number `epoch`.
  virtual void rewind(uint64_t epoch) = 0;

  // The position of the iterator. Must be cheap, since prefetch calls it after every element. Not
  // const: the position may depend on a choice that is still open, which saving then makes.
  virtual IteratorState save() = 0;
  // Goes to the position at which save() was called, on an iterator of an equal pipeline; the same
  // elements follow.
  // Errors: DataLoss (the state fits no iterator of this kind); after that only another restore may
  // be called.
  virtual void restore(const IteratorState& state) = 0;
};

}  // namespace cohort::internal
