#include "cohort/parameter_server/coordinator/closure_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/time_histogram.h"

namespace cohort::internal {
namespace {

using Closures = std::vector<ClosurePtr>;

constexpr char kStopped[] = "the coordinator has ended";

std::string name_of(const Closure& closure) {
  return str("'", closure.function, "' (closure ", closure.number, ")");
}

// TensorFlow's words, and what happened.
std::exception_ptr cancelled_error(const Closure& closure, const std::string& why) {
  return std::make_exception_ptr(CancelledError(
      str("The corresponding function is cancelled. Please reschedule the function. (",
          name_of(closure), ": ", why, ")")));
}

void cancel(const Closures& closures, const std::string& why) {
  for (const ClosurePtr& closure : closures) closure->result->fail(cancelled_error(*closure, why));
}

void fail(const Closures& closures, const std::exception_ptr& error) {
  for (const ClosurePtr& closure : closures) closure->result->fail(error);
}

std::string words_of(const ClosureError& cause) {
  return str("'", cause.function, "' (closure ", cause.closure,
             ") failed: ", record_error(cause.error).message);
}

bool is_cancelled(const std::exception_ptr& error) {
  return record_error(error).code == Code::kCancelled;
}

}  // namespace

ClosureQueue::ClosureQueue(Options options)
    : options_(std::move(options)), next_id_(options_.first_id) {}

// Waits, says now and then what for, and gives up if nothing moves.
bool ClosureQueue::wait(Lock& lock, Deadline deadline, const char* what,
                        FunctionRef<bool()> ready) {
  const Clock::time_point began = Clock::now();
  Clock::time_point next_report = began + options_.report_after;
  ++waiters_;
  bool is_ready = ready();
  while (!is_ready) {
    const Clock::time_point now = Clock::now();
    const Clock::time_point idle_since = std::max(began, last_end_);
    const Clock::time_point limit = std::min(deadline, idle_since + options_.patience);
    if (now >= limit) break;
    if (now >= next_report) {
      next_report = now + options_.report_after;
      const std::string text = idle_text(what, began);
      if (!text.empty() && options_.on_report) {
        lock.unlock();
        options_.on_report(text);
        lock.lock();
      }
    }
    changed_.wait_until(lock, std::min(limit, next_report));
    is_ready = ready();
  }
  --waiters_;
  return is_ready;
}

void ClosureQueue::put(ClosurePtr closure, Deadline deadline) {
  {
    Lock lock(mutex_);
    throw_pending(lock, deadline);
    const auto has_room = [this] {
      return stopped_ || broken_ || !errors_.empty() || options_.max_queued == 0 ||
             queue_.size() + awaiting_.size() < options_.max_queued;
    };
    if (!has_room() && !wait(lock, deadline, "schedule, whose queue is full,", has_room)) {
      throw DeadlineExceededError(str("no worker took a closure in time: ", state()));
    }
    throw_pending(lock, deadline);
    check_running();
    closure->id = next_id_++;
    closure->number = closure->id - options_.first_id + 1;
    closure->epoch = epoch_;
    if (live_.empty()) last_end_ = Clock::now();
    live_.insert(live_.end(), closure->id);
    ++unfinished_[epoch_];
    if (closure->awaits_arguments) {
      awaiting_.emplace(closure.get(), closure);
      return;
    }
    queue_.push_back(std::move(closure));
  }
  offer(1);
}

void ClosureQueue::ready(const ClosurePtr& closure) {
  {
    const std::lock_guard lock(mutex_);
    if (awaiting_.erase(closure.get()) == 0) return;  // cancelled meanwhile
    queue_.push_back(closure);
  }
  offer(1);
}

void ClosureQueue::give_up(const ClosurePtr& closure, const std::exception_ptr& why,
                           RootFailure root) {
  {
    const std::lock_guard lock(mutex_);
    if (awaiting_.erase(closure.get()) == 0) return;
    count_end(*closure);
    tell();
  }
  closure->result->fail(why, std::move(root));
}

ClosurePtr ClosureQueue::take(int worker) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || broken_ || queue_.empty()) return nullptr;
  const bool has_begun = queue_.front()->attempts > 0;
  if (!has_begun && (!errors_.empty() || cancelling_ || pauses_ > 0)) return nullptr;
  const bool was_full =
      options_.max_queued != 0 && queue_.size() + awaiting_.size() >= options_.max_queued;
  ClosurePtr closure = std::move(queue_.front());
  queue_.pop_front();
  if (++closure->attempts == 1) ++begun_;
  flights_.emplace(closure.get(), Flight{closure, worker, Clock::now()});
  if (was_full && waiters_ > 0) tell();
  return closure;
}

ClosurePtr ClosureQueue::land(int worker, const Closure& closure) {
  const auto flight = flights_.find(&closure);
  if (flight == flights_.end() || flight->second.worker != worker) {
    throw InternalError(str("worker ", worker, " does not have closure ", closure.number));
  }
  static TimeHistogram& times = time_histogram("closure_execution");
  times.add(Clock::now() - flight->second.since);
  ClosurePtr landed = std::move(flight->second.closure);
  flights_.erase(flight);
  return landed;
}

void ClosureQueue::count_end(const Closure& closure) {
  if (closure.attempts > 0) --begun_;
  live_.erase(closure.id);
  last_end_ = Clock::now();
  const auto epoch = unfinished_.find(closure.epoch);
  if (--epoch->second == 0) unfinished_.erase(epoch);
}

void ClosureQueue::finished(int worker, const Closure& closure, Structure value) {
  ClosurePtr landed;
  {
    const std::lock_guard lock(mutex_);
    landed = land(worker, closure);
  }
  // Before it counts as ended, so that its result is there when join() returns.
  landed->result->set(std::move(value));
  const std::lock_guard lock(mutex_);
  count_end(closure);
  if (waiters_ > 0 && (begun_ == 0 || all_ended(closure.epoch))) tell();
}

void ClosureQueue::failed(int worker, const Closure& closure, std::exception_ptr error) {
  ClosurePtr landed;
  Closures dropped;
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    landed = land(worker, closure);
    const bool is_repeated = broken_ != nullptr || (cancelling_ && is_cancelled(error));
    if (!is_repeated) {
      errors_.push_back({closure.number, closure.function, worker, error});
      why = words_of(errors_.front());
      // At once: who fetches one of them may be the only one who calls. And before the result ends,
      // else those that take it would be given up one by one.
      drop_queued(dropped);
    }
  }
  landed->result->fail(error);
  cancel(dropped, why);
  const std::lock_guard lock(mutex_);
  count_end(closure);  // who waits for that finds all results ended
  tell();
}

void ClosureQueue::put_back(int worker, ClosurePtr closure) {
  if (closure->attempts >= options_.max_attempts) {
    return failed(
        worker, *closure,
        make_error(Code::kUnavailable,
                   str(name_of(*closure), " was lost with its worker ", closure->attempts,
                       " times, last with worker ", worker, "; perhaps it is what ends them")));
  }
  std::exception_ptr over;
  {
    const std::lock_guard lock(mutex_);
    land(worker, *closure);
    if (stopped_ || broken_) {
      count_end(*closure);
      over = broken_ ? broken_ : cancelled_error(*closure, kStopped);
    } else {
      queue_.push_front(closure);
    }
    tell();
  }
  if (over != nullptr) closure->result->fail(over);
  offer(1);
}

void ClosureQueue::join(Deadline deadline) {
  Lock lock(mutex_);
  const uint64_t own = epoch_++;
  const bool ended = wait(lock, deadline, "join", [&] {
    return stopped_ || broken_ || !errors_.empty() || all_ended(own);
  });
  throw_pending(lock, deadline);
  check_running();
  if (!ended) throw DeadlineExceededError(str("join: ", state()));
}

bool ClosureQueue::done() {
  Lock lock(mutex_);
  throw_pending(lock, Deadline::max());
  return unfinished_.empty();
}

std::shared_ptr<void> ClosureQueue::pause(Deadline deadline) {
  const auto resume = [this](void*) {
    {
      const std::lock_guard lock(mutex_);
      --pauses_;
    }
    offer(std::numeric_limits<size_t>::max());
  };
  Lock lock(mutex_);
  ++pauses_;
  lock.unlock();
  std::shared_ptr<void> paused(nullptr, resume);
  lock.lock();
  const bool was_broken = broken_ != nullptr;
  const bool is_still = wait(lock, deadline, "a checkpoint, for which closures pause,",
                             [this] { return begun_ == 0 || stopped_ || broken_; });
  if (!is_still) {
    const std::string text = str("closures that have begun did not end in time: ", state());
    lock.unlock();  // before `paused` ends
    throw DeadlineExceededError(text);
  }
  // What broke before is known to who saves: values of ps tasks that are left, for instance.
  const std::exception_ptr broke_meanwhile = was_broken ? nullptr : broken_;
  lock.unlock();
  if (broke_meanwhile != nullptr) std::rethrow_exception(broke_meanwhile);
  return paused;
}

void ClosureQueue::throw_pending(Lock& lock, Deadline deadline) {
  check_not_broken();
  if (cancelling_) {  // another thread throws it
    wait(lock, deadline, "a call during cancellation", [this] { return !cancelling_; });
    check_not_broken();
    return;
  }
  if (errors_.empty()) return;
  cancelling_ = true;
  const std::string why = words_of(errors_.front());
  const Closures under_way = in_flight_closures();
  lock.unlock();
  cancel(under_way, why);
  lock.lock();
  const bool landed = wait(lock, deadline, "the cancellation of closures",
                           [this] { return begun_ == 0 || stopped_ || broken_; });
  const std::exception_ptr first = broken_ ? broken_ : errors_.front().error;
  if (landed && !broken_) thrown_ = std::exchange(errors_, {});  // else the next call waits on
  cancelling_ = false;
  tell();
  std::rethrow_exception(first);
}

// What has begun stays.
void ClosureQueue::drop_queued(Closures& dropped) {
  const auto drop = [&](const ClosurePtr& closure) {
    dropped.push_back(closure);
    count_end(*closure);
  };
  std::erase_if(queue_, [&](const ClosurePtr& closure) {
    if (closure->attempts > 0) return false;
    drop(closure);
    return true;
  });
  for (const auto& [key, closure] : awaiting_) drop(closure);
  awaiting_.clear();
}

// Closures that are under way are on their workers: only their results end.
Closures ClosureQueue::drop_all() {
  Closures dropped = in_flight_closures();
  drop_queued(dropped);
  for (const ClosurePtr& closure : queue_) {
    dropped.push_back(closure);
    count_end(*closure);
  }
  queue_.clear();
  return dropped;
}

Closures ClosureQueue::in_flight_closures() const {
  Closures closures;
  for (const auto& [key, flight] : flights_) closures.push_back(flight.closure);
  return closures;
}

bool ClosureQueue::break_with(const std::exception_ptr& error) {
  Closures dropped;
  {
    const std::lock_guard lock(mutex_);
    if (broken_ || stopped_) return false;
    broken_ = error;
    errors_.push_back({.function = "", .error = error});
    dropped = drop_all();
  }
  fail(dropped, error);
  tell();
  return true;
}

std::exception_ptr ClosureQueue::wait_for_break(Deadline deadline) {
  Lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return broken_ != nullptr || stopped_; });
  return broken_;
}

void ClosureQueue::check_not_broken() const {
  if (broken_) std::rethrow_exception(broken_);
}

void ClosureQueue::check_running() const {
  if (stopped_) throw CancelledError("the coordinator has stopped");
}

bool ClosureQueue::all_ended(uint64_t epoch) const {
  return unfinished_.empty() || unfinished_.begin()->first > epoch;
}

uint64_t ClosureQueue::oldest_unfinished() const {
  const std::lock_guard lock(mutex_);
  return live_.empty() ? next_id() : *live_.begin();
}

size_t ClosureQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size() + awaiting_.size();
}

size_t ClosureQueue::in_flight() const {
  const std::lock_guard lock(mutex_);
  return flights_.size();
}

std::vector<ClosureError> ClosureQueue::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_.empty() ? thrown_ : errors_;
}

void ClosureQueue::stop() {
  Closures dropped;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    dropped = drop_all();
  }
  cancel(dropped, kStopped);
  tell();
}

}  // namespace cohort::internal
