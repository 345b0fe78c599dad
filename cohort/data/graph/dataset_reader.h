// The root of a pipeline, from which a dataset's iterator reads; it knows its position.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/program/process.h"
#include "cohort/core/threads/exclusive_use.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/iterator.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/iteration/state.h"

namespace cohort::internal {

// An interruption of a pass makes the iterator unusable. The reader therefore saves a mark, a state
// of the pipeline, from time to time, and counts the elements that it has returned since. After a
// missed deadline the next call restores the mark, skips that many elements, and continues. After
// any other interruption the pass has ended.
//
// Thread safety: none; a second thread in a call gets a FailedPrecondition. So does a child of
// fork, to which neither the threads nor the positions in files belong.
class DatasetReader {
 public:
  DatasetReader(DataNodePtr root, const IteratorContext& context);
  ~DatasetReader();

  const DataNode& root() const { return *root_; }
  // The graph as states have it (describe_state_graph).
  const std::shared_ptr<const std::string>& graph() const { return graph_; }

  // See DataIterator::next. Errors: also InputDeadlineExceeded, which consumes nothing.
  bool next(Structure& out);

  IteratorState state() const;
  struct Place {
    std::shared_ptr<DataIterator> iterator;
    std::optional<uint64_t> pass;  // unknown: of a state of an earlier version
  };
  // The position of `state`, for `go_to`. Two steps, so that a caller can be sure of success before
  // anything changes.
  // Errors: see DatasetIterator::restore.
  Place place_at(const IteratorState& state) const { return place_after(state, 0); }
  // So many elements further, which are passed over.
  Place place_after(const IteratorState& state, int64_t elements) const;
  void go_to(Place place);

 private:
  enum class Standing { kReads, kInterrupted, kEnded };

  void mark();
  void note(const PassInterrupted& interrupted);
  void check_mark() const;
  // At the position `given` elements after `mark`.
  std::unique_ptr<DataIterator> iterator_at(const IteratorState& mark, int64_t given) const;

  const HomeProcess home_;
  mutable ExclusiveUse use_;
  DataNodePtr root_;
  IteratorContext context_;
  // The graph's text, compared on restore; shared by all states.
  std::shared_ptr<const std::string> graph_;
  std::shared_ptr<DataIterator> iterator_;  // unusable unless standing_ is kReads
  Standing standing_ = Standing::kReads;

  IteratorState::Child mark_;  // the iterator's state, this many elements and errors ago:
  int64_t given_ = 0;
  int64_t next_mark_ = 0;      // the value of given_ at which the next mark is due
  int64_t mark_interval_ = 1;  // in elements, if they are ordered
  std::chrono::steady_clock::time_point marked_at_;
};

}  // namespace cohort::internal
