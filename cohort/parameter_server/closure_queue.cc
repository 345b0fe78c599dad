#include "cohort/parameter_server/closure_queue.h"

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

std::exception_ptr cancelled_error() {
  return std::make_exception_ptr(
      CancelledError("The corresponding function is cancelled. Please reschedule the function."));
}

bool is_cancelled(const std::exception_ptr& error) {
  return record_error(error).code == Code::kCancelled;
}

}  // namespace

ClosureQueue::ClosureQueue(Options options)
    : options_(std::move(options)), next_id_(options_.first_id) {}

void ClosureQueue::put(ClosurePtr closure, Deadline deadline) {
  {
    std::unique_lock lock(mutex_);
    throw_pending(lock, deadline);
    const auto has_room = [this] {
      return stopped_ || !errors_.empty() || options_.max_queued == 0 ||
             queue_.size() < options_.max_queued;
    };
    if (!changed_.wait_until(lock, deadline, has_room)) {
      throw DeadlineExceededError(str("no worker took a closure in time: ", state()));
    }
    throw_pending(lock, deadline);
    check_running();
    closure->id = next_id_++;
    closure->epoch = epoch_;
    live_.insert(live_.end(), closure->id);
    ++unfinished_[epoch_];
    queue_.push_back(std::move(closure));
  }
  if (options_.on_available) options_.on_available();
}

void ClosureQueue::put_for(int worker, ClosurePtr closure) {
  {
    const std::lock_guard lock(mutex_);
    check_running();
    closure->id = next_id_++;
    of_worker_[worker].push_back(std::move(closure));
  }
  if (options_.on_available) options_.on_available();
}

ClosurePtr ClosureQueue::take(int worker) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return nullptr;
  Kind kind = Kind::kWorkers;
  std::deque<ClosurePtr>* from = nullptr;
  if (const auto own = of_worker_.find(worker); own != of_worker_.end() && !own->second.empty()) {
    from = &own->second;
  } else if (errors_.empty() && !cancelling_ && !queue_.empty()) {
    kind = Kind::kProgram;
    from = &queue_;
  }
  if (from == nullptr) return nullptr;
  ClosurePtr closure = std::move(from->front());
  from->pop_front();
  ++closure->attempts;
  flights_[closure.get()] = {worker, kind};
  if (kind == Kind::kProgram) {
    ++program_in_flight_;
    changed_.notify_all();  // there is room
  }
  return closure;
}

ClosureQueue::Kind ClosureQueue::land(int worker, const Closure& closure) {
  const auto flight = flights_.find(&closure);
  if (flight == flights_.end() || flight->second.worker != worker) {
    throw InternalError(str("worker ", worker, " does not have closure ", closure.id));
  }
  const Kind kind = flight->second.kind;
  flights_.erase(flight);
  if (kind == Kind::kProgram) --program_in_flight_;
  return kind;
}

void ClosureQueue::count_end(const Closure& closure) {
  live_.erase(closure.id);
  const auto epoch = unfinished_.find(closure.epoch);
  if (--epoch->second == 0) unfinished_.erase(epoch);
}

void ClosureQueue::finished(int worker, const Closure& closure, Structure value) {
  closure.result->set(std::move(value));
  const std::lock_guard lock(mutex_);
  if (land(worker, closure) == Kind::kProgram) count_end(closure);
  changed_.notify_all();
}

void ClosureQueue::failed(int worker, const Closure& closure, std::exception_ptr error) {
  closure.result->fail(error);
  const std::lock_guard lock(mutex_);
  if (land(worker, closure) == Kind::kProgram) {
    count_end(closure);
    if (!cancelling_ || !is_cancelled(error)) {
      errors_.push_back({closure.id, closure.function, worker, std::move(error)});
    }
  }
  changed_.notify_all();
}

void ClosureQueue::put_back(int worker, ClosurePtr closure) {
  {
    const std::lock_guard lock(mutex_);
    const Kind kind = land(worker, *closure);
    if (kind == Kind::kWorkers) {
      of_worker_[worker].push_front(std::move(closure));
    } else if (stopped_ || cancelling_) {
      closure->result->fail(cancelled_error());
      count_end(*closure);
    } else {
      queue_.push_front(std::move(closure));
    }
    changed_.notify_all();
  }
  if (options_.on_available) options_.on_available();
}

void ClosureQueue::join(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const uint64_t own = epoch_++;
  const bool ended = changed_.wait_until(
      lock, deadline, [&] { return stopped_ || !errors_.empty() || all_ended(own); });
  throw_pending(lock, deadline);
  check_running();
  if (!ended) throw DeadlineExceededError(str("join: ", state()));
}

bool ClosureQueue::done() {
  std::unique_lock lock(mutex_);
  throw_pending(lock, Deadline::max());
  return unfinished_.empty();
}

void ClosureQueue::throw_pending(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (cancelling_) {  // another thread throws it
    changed_.wait_until(lock, deadline, [this] { return !cancelling_; });
    return;
  }
  if (errors_.empty()) return;
  cancelling_ = true;
  for (const auto& [closure, flight] : flights_) {
    if (flight.kind == Kind::kProgram) closure->result->fail(cancelled_error());
  }
  if (options_.on_cancel) {
    lock.unlock();
    options_.on_cancel();
    lock.lock();
  }
  const bool landed =
      changed_.wait_until(lock, deadline, [this] { return program_in_flight_ == 0 || stopped_; });
  for (const ClosurePtr& closure : queue_) {
    closure->result->fail(cancelled_error());
    count_end(*closure);
  }
  queue_.clear();
  const std::exception_ptr first = errors_.front().error;
  if (landed) errors_.clear();  // else the next call goes on waiting
  cancelling_ = false;
  changed_.notify_all();
  std::rethrow_exception(first);
}

void ClosureQueue::check_running() const {
  if (stopped_) throw CancelledError("the coordinator has stopped");
}

bool ClosureQueue::all_ended(uint64_t epoch) const {
  return unfinished_.empty() || unfinished_.begin()->first > epoch;
}

std::string ClosureQueue::state() const {
  std::string text = str(queue_.size(), " closures are queued, ", program_in_flight_, " under way");
  for (const auto& [closure, flight] : flights_) {
    text += str("; worker ", flight.worker, " runs '", closure->function, "' (closure ",
                closure->id, ")");
    if (text.size() > 300) return text + " and others";
  }
  return text;
}

uint64_t ClosureQueue::oldest_unfinished() const {
  const std::lock_guard lock(mutex_);
  return live_.empty() ? next_id_ : *live_.begin();
}

uint64_t ClosureQueue::next_id() const {
  const std::lock_guard lock(mutex_);
  return next_id_;
}

size_t ClosureQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

size_t ClosureQueue::in_flight() const {
  const std::lock_guard lock(mutex_);
  return program_in_flight_;
}

std::vector<ClosureError> ClosureQueue::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

void ClosureQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    for (const ClosurePtr& closure : queue_) {
      closure->result->fail(cancelled_error());
      count_end(*closure);
    }
    queue_.clear();
    for (const auto& [worker, closures] : of_worker_) {
      for (const ClosurePtr& closure : closures) closure->result->fail(cancelled_error());
    }
    of_worker_.clear();
  }
  changed_.notify_all();
  if (options_.on_cancel) options_.on_cancel();
}

}  // namespace cohort::internal
