// What a scheduled function will have returned: the state behind coordinator::RemoteValue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "cohort/core/structure.h"

namespace cohort::internal {

enum class RemoteStatus { kNotReady, kAborted, kReady };

// Thread safety: any thread.
class RemoteResult {
 public:
  RemoteResult() = default;
  RemoteResult(const RemoteResult&) = delete;
  RemoteResult& operator=(const RemoteResult&) = delete;

  // These end the wait of all who ask. Only the first has an effect.
  void set(Structure value);
  // The function's own error, or Cancelled.
  void fail(std::exception_ptr error);

  // `call` is called once, when it has ended, by the thread that ends it; at once if it has.
  void on_end(std::function<void(const RemoteResult&)> call);

  RemoteStatus status() const;
  // Waits for the function to end. Errors: that with which it failed, Cancelled (it will not run),
  // DeadlineExceeded (says what it waited for: `what`).
  Structure get(std::chrono::steady_clock::time_point deadline, const std::string& what) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool is_ended_ = false;     // guarded by mutex_, as is what follows
  std::exception_ptr error_;  // null: value_ counts
  Structure value_;
  std::vector<std::function<void(const RemoteResult&)>> on_end_;

  void end(std::unique_lock<std::mutex> lock);
};

}  // namespace cohort::internal
