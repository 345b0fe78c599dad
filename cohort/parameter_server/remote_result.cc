#include "cohort/parameter_server/remote_result.h"

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

void RemoteResult::set(Structure value) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    is_ended_ = true;
    value_ = std::move(value);
  }
  ended_.notify_all();
}

void RemoteResult::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    is_ended_ = true;
    error_ = std::move(error);
  }
  ended_.notify_all();
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
