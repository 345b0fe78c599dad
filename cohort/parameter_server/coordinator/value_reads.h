// The reads of workers' values that callers of a coordinator wait for.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/parameter_server/coordinator/input_handle.h"
#include "cohort/parameter_server/coordinator/remote_result.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

// A read of a worker's value, until it is answered.
struct ValueRead {
  size_t worker = 0;
  InputHandlePtr value = nullptr;
  std::shared_ptr<RemoteResult> result = nullptr;
  SessionId asked_in = 0;  // 0: it waits for the worker
};

// Thread safety: any thread, with any lock held.
class ValueReads {
 public:
  // `state`: what its caller waits for; said each time that `report_after` has passed.
  std::shared_ptr<RemoteResult> add(size_t worker, const InputHandlePtr& value,
                                    std::chrono::nanoseconds report_after,
                                    std::function<std::string()> state);
  // The reads that the worker's session has not been asked; from here on it has.
  std::vector<ValueRead> to_ask(size_t worker, SessionId session);
  // All reads of the worker, which nobody answers any more.
  std::vector<ValueRead> take_all(size_t worker);
  void take(const std::shared_ptr<RemoteResult>& result);
  // Forgets reads whose callers have given up.
  void drop_unwanted();
  // All end with the error.
  void end(const std::exception_ptr& error);

 private:
  std::mutex mutex_;
  std::vector<ValueRead> reads_;  // guarded by mutex_
};

}  // namespace cohort::internal
