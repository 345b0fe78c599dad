// One of the datasets that an interleave reads in turn, perhaps ahead on the thread pool.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "cohort/data/iteration/iterator.h"
#include "cohort/data/iteration/work_group.h"

namespace cohort::internal {

// Thread safety: none. The work group must live as long.
class SubReader {
 public:
  SubReader(std::unique_ptr<DataIterator> iterator, WorkGroup& work)
      : iterator_(std::move(iterator)), work_(work) {}
  // Waits for what is being read.
  ~SubReader();

  // See DataIterator::next.
  bool next(Structure& out);
  const std::shared_ptr<const std::string>& last_origin() const { return last_origin_; }
  // Has the pool read until `count` elements wait here, unless it already does.
  void read_ahead(int64_t count);
  // Whether next() would not wait.
  bool is_ready();

  // The iterator's state before the element that next() gives.
  IteratorState save();
  // Before anything is read ahead.
  void restore(const IteratorState& state) { iterator_->restore(state); }

 private:
  struct Item {
    IteratorState before;
    Structure element;
    std::shared_ptr<const std::string> origin;
    std::exception_ptr error;
    bool end = false;  // nothing follows: also after an error that interrupts the pass
  };
  using Items = std::vector<Item>;

  // Reads up to `count` items, fewer at the end and where reading takes too long.
  static void read(DataIterator& iterator, int64_t count, Items& items);
  // Takes over what the pool has read, where it is done.
  void collect();

  std::unique_ptr<DataIterator> iterator_;  // the task's while there is one
  WorkGroup& work_;
  std::deque<Item> queue_;
  bool ended_ = false;       // queue_ holds the end
  WorkGroup::TaskPtr task_;  // reads into coming_
  std::shared_ptr<Items> coming_;
  IteratorState before_task_;
  std::shared_ptr<const std::string> last_origin_;
};

}  // namespace cohort::internal
