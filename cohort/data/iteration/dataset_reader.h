// What an iterator of a dataset reads from: the root of the pipeline, and where it stands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cohort/data/iteration/iterator.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/nodes/node.h"
#include "cohort/data/state.h"

namespace cohort::internal {

// Where a pass is interrupted the iterator is lost. So the reader marks where it stands from time
// to time, and counts what it has given since: after a missed deadline the next call begins at the
// mark again, passes over as many, and goes on. After any other interruption the pass has ended.
//
// Thread safety: none.
class DatasetReader {
 public:
  DatasetReader(DataNodePtr root, const IteratorContext& context);

  const DataNode& root() const { return *root_; }

  // As DataIterator's. Errors: also InputDeadlineExceeded, which consumes nothing.
  bool next(Structure& out);

  IteratorState state() const;
  // An iterator at the place of `state`, which `replace_iterator` then puts in: for those who must
  // know that all is well before anything changes. Errors: see DatasetIterator::restore.
  std::unique_ptr<DataIterator> iterator_at(const IteratorState& state) const;
  void replace_iterator(std::shared_ptr<DataIterator> iterator);

 private:
  enum class Standing { kReads, kInterrupted, kEnded };

  void mark();
  void note(const PassInterrupted& interrupted);
  void check_mark() const;
  // At `mark` and `given` elements on.
  std::unique_ptr<DataIterator> iterator_at(const IteratorState& mark, int64_t given) const;

  DataNodePtr root_;
  IteratorContext context_;
  // The graph's text, compared on restore; shared by all states.
  std::shared_ptr<const std::string> graph_;
  std::shared_ptr<DataIterator> iterator_;  // lost unless standing_ is kReads
  Standing standing_ = Standing::kReads;

  IteratorState::Child mark_;  // the iterator's state, so many elements and errors ago:
  int64_t given_ = 0;
  int64_t next_mark_ = 0;      // for how many there is a new one
  int64_t mark_interval_ = 1;  // of ordered elements
  std::chrono::steady_clock::time_point marked_at_;
};

}  // namespace cohort::internal
