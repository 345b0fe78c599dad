#include "cohort/parameter_server/coordinator/remote_result.h"

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

void RemoteResult::set(Structure value) {
  std::unique_lock lock(mutex_);
  if (is_ended_) return;
  value_ = std::move(value);
  end(std::move(lock));
}

void RemoteResult::fail(std::exception_ptr error) {
  std::unique_lock lock(mutex_);
  if (is_ended_) return;
  error_ = std::move(error);
  end(std::move(lock));
}

void RemoteResult::end(std::unique_lock<std::mutex> lock) {
  is_ended_ = true;
  const auto calls = std::exchange(on_end_, {});
  lock.unlock();
  ended_.notify_all();
  for (const auto& call : calls) call(*this);
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

Structure RemoteResult::get(std::chrono::steady_clock::time_point deadline,
                            const std::string& what) const {
  std::unique_lock lock(mutex_);
  if (!ended_.wait_until(lock, deadline, [this] { return is_ended_; })) {
    throw DeadlineExceededError(str(what, " has not ended in time"));
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  return value_;
}

}  // namespace cohort::internal
