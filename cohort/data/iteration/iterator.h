// How a node's elements are read: one at a time, or as blocks of many.
//
// A block is a run of consecutive elements stacked into one structure, each leaf with a new
// dimension 0. Blocks keep the cost per element out of pipelines of small records: a batch above
// from_tensor_slices is one view, above a shuffle one gather, above a scalar map one loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cohort/core/structure.h"
#include "cohort/data/state.h"

namespace cohort::internal {

struct IteratorContext {
  // Which pass over the data this is, for what differs between passes (shuffles).
  uint64_t epoch = 0;
  // Only the form of an element is wanted: buffers and threads are left out.
  bool probing = false;
  // Which of several workers reads, for what differs between them (random maps).
  uint64_t worker = 0;
  // Whether parallel stages that do not say keep the order of their input.
  bool deterministic = true;
  // Whether they keep it whatever they say: what is above them reads elements again, or counts on
  // their positions.
  bool keep_order = false;
  // Set where a stage does not keep it; may be null.
  std::shared_ptr<std::atomic<bool>> unordered = nullptr;

  IteratorContext keeping_order() const {
    IteratorContext context = *this;
    context.keep_order = true;
    return context;
  }
  // Of a stage that says, or does not.
  bool is_deterministic(const std::optional<bool>& stage) const {
    const bool ordered = keep_order || stage.value_or(deterministic);
    if (!ordered && unordered) *unordered = true;
    return ordered;
  }
};

// An element that fails with a std::exception is consumed: the following call gives the one after
// it. After a PassInterrupted (pass_interrupted.h), or one that restore throws, the iterator is
// good for nothing but rewind and restore. Thread safety: none.
class DataIterator {
 public:
  virtual ~DataIterator() = default;

  // Puts the next element into `out`; false at the end, then and ever after.
  virtual bool next(Structure& out) = 0;

  // Whether next_block costs far less than as many calls of next, and reading a few hundred
  // elements ahead does no harm.
  virtual bool has_blocks() const { return false; }
  // Puts up to `n` elements into `out` as one block and returns how many; 0 only at the end, fewer
  // than `n` wherever that is easier. A block fails as a whole: where one of its elements fails,
  // all of them are consumed. `n` is positive. Only where has_blocks(); with_blocks (blocks.h)
  // makes blocks of any input.
  virtual int64_t next_block(int64_t n, Structure& out);

  // As next_block, of elements that need not follow one another: for each of `gaps`, of which there
  // is at least one, passes over so many and takes the next. After an error the iterator is good
  // for nothing but rewind and restore.
  virtual int64_t pick_block(std::span<const int64_t> gaps, Structure& out);

  // Passes over up to `n` elements and returns over how many; fewer only at the end. Elements that
  // would fail count, and their errors are lost.
  virtual int64_t skip(int64_t n);

  // Where the element, or the block, that came last is from, for messages: "file 'a.tfrecord'";
  // null where that is not known.
  virtual std::shared_ptr<const std::string> last_origin() const { return nullptr; }

  // Back to the first element, for pass number `epoch`.
  virtual void rewind(uint64_t epoch) = 0;

  // Where the iterator stands; cheap, since prefetch asks after every element. Not const: what a
  // state says must come true, and so may settle what was open.
  virtual IteratorState save() = 0;
  // To where save() was called, on an iterator of an equal pipeline. Afterwards the same elements
  // follow. Errors: DataLoss (the state fits no iterator of this kind); the iterator is then good
  // for nothing but another restore.
  virtual void restore(const IteratorState& state) = 0;
};

}  // namespace cohort::internal
