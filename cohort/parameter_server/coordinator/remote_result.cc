#include "cohort/parameter_server/coordinator/remote_result.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using Call = std::function<void()>;

constexpr std::chrono::nanoseconds kLeastPause = std::chrono::milliseconds(1);  // between reports

// The calls that are due in this thread. Null: none is running.
thread_local std::deque<Call>* due = nullptr;

void call_in_turn(Call call) {
  if (due != nullptr) {
    due->push_back(std::move(call));
    return;
  }
  std::deque<Call> calls;
  calls.push_back(std::move(call));
  struct Turn {
    explicit Turn(std::deque<Call>& calls) { due = &calls; }
    ~Turn() { due = nullptr; }
  } const turn(calls);
  while (!calls.empty()) {
    const Call next = std::move(calls.front());
    calls.pop_front();
    next();
  }
}

}  // namespace

void RemoteResult::set(Structure value) {
  std::unique_lock lock(mutex_);
  if (is_ended_) return;
  value_ = std::move(value);
  end(std::move(lock));
}

void RemoteResult::fail(std::exception_ptr error) { fail(std::move(error), {}); }

void RemoteResult::fail(std::exception_ptr error, RootFailure root) {
  std::unique_lock lock(mutex_);
  if (is_ended_) return;
  error_ = std::move(error);
  root_ = std::move(root);
  end(std::move(lock));
}

void RemoteResult::end(std::unique_lock<std::mutex> lock) {
  is_ended_ = true;
  auto calls = std::exchange(on_end_, {});
  lock.unlock();
  ended_.notify_all();
  for (auto& call : calls) {
    call_in_turn([self = shared_from_this(), call = std::move(call)] { call(*self); });
  }
}

void RemoteResult::on_end(std::function<void(const RemoteResult&)> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ended_) {
      on_end_.push_back(std::move(call));
      return;
    }
  }
  call(*this);
}

RemoteStatus RemoteResult::status() const {
  const std::lock_guard lock(mutex_);
  if (!is_ended_) return RemoteStatus::kNotReady;
  return error_ == nullptr ? RemoteStatus::kReady : RemoteStatus::kAborted;
}

void RemoteResult::describe(std::function<ResultWait()> make) {
  const std::lock_guard lock(mutex_);
  make_wait_ = std::move(make);
}

RootFailure RemoteResult::root() const {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr || !root_.text.empty()) return root_;
  return {.text = record_error(error_).message};
}

Structure RemoteResult::get(std::chrono::steady_clock::time_point deadline,
                            const std::string& what) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  std::unique_lock lock(mutex_);
  std::optional<ResultWait> wait;
  if (!is_ended_ && make_wait_) {
    const std::function<ResultWait()> make = make_wait_;
    lock.unlock();
    wait = make();
    lock.lock();
  }
  const auto pause =
      !wait ? std::chrono::nanoseconds(0) : std::max(wait->report_after, kLeastPause);
  Clock::time_point next_report = !wait ? Clock::time_point::max() : began + pause;
  while (!is_ended_) {
    if (ended_.wait_until(lock, std::min(deadline, next_report), [this] { return is_ended_; })) {
      break;
    }
    lock.unlock();
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      if (!wait) throw DeadlineExceededError(str(what, " has not ended in time"));
      throw DeadlineExceededError(str(wait->what, " has not ended in time: ", wait->state()));
    }
    next_report = now + pause;
    wait->report(wait->what, began);
    lock.lock();
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  return value_;
}

}  // namespace cohort::internal
