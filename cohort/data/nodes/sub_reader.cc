#include "cohort/data/nodes/sub_reader.h"

#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::internal {

SubReader::~SubReader() {
  if (task_) work_.drop(task_);
}

void SubReader::read(DataIterator& iterator, int64_t count, Items& items) {
  for (int64_t i = 0; i < count; ++i) {
    Item item;
    try {
      item.before = iterator.save();
      item.end = !iterator.next(item.element);
      item.origin = iterator.last_origin();
    } catch (const PassInterrupted&) {
      item.error = std::current_exception();
      item.end = true;
    } catch (...) {
      item.error = std::current_exception();
      if (!item.error) {
        item.error = thread_ended_error("a function of the dataset");
        items.push_back(std::move(item));
        throw;
      }
    }
    items.push_back(std::move(item));
    if (items.back().end) return;
  }
}

void SubReader::collect() {
  if (!task_ || !work_.is_done(task_)) return;
  for (Item& item : *coming_) {
    ended_ = item.end;
    queue_.push_back(std::move(item));
  }
  task_ = nullptr;
}

void SubReader::read_ahead(int64_t count) {
  collect();
  const int64_t missing = count - static_cast<int64_t>(queue_.size());
  if (task_ || ended_ || missing < 1) return;
  before_task_ = iterator_->save();
  coming_ = std::make_shared<Items>();
  task_ = work_.add(
      [iterator = iterator_.get(), missing, items = coming_] { read(*iterator, missing, *items); });
}

bool SubReader::is_ready() {
  collect();
  return !queue_.empty() || !task_;
}

bool SubReader::next(Structure& out) {
  collect();
  if (queue_.empty() && task_) {
    work_.finish(task_);
    collect();
  }
  if (queue_.empty()) {
    const bool found = iterator_->next(out);
    last_origin_ = iterator_->last_origin();
    return found;
  }
  if (queue_.front().end) {
    if (queue_.front().error) std::rethrow_exception(queue_.front().error);
    return false;
  }
  Item item = std::move(queue_.front());
  queue_.pop_front();
  last_origin_ = std::move(item.origin);
  if (item.error) std::rethrow_exception(item.error);
  out = std::move(item.element);
  return true;
}

IteratorState SubReader::save() {
  collect();
  if (!queue_.empty()) return queue_.front().before;
  return task_ ? before_task_ : iterator_->save();
}

}  // namespace cohort::internal
