#include "cohort/parameter_server/coordinator/value_reads.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::shared_ptr<RemoteResult> ValueReads::add(size_t worker, const InputHandlePtr& value,
                                              std::chrono::nanoseconds report_after,
                                              std::function<std::string()> state) {
  auto result = std::make_shared<RemoteResult>();
  result->describe([worker, report_after, state = std::move(state)] {
    return ResultWait{
        .what = str("fetch of worker ", worker, "'s value"),
        .report_after = report_after,
        .report =
            [state](const std::string& what, std::chrono::steady_clock::time_point began) {
              const auto waited = std::chrono::steady_clock::now() - began;
              log_warning(what, " has waited for ",
                          std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                          " s: ", state());
            },
        .state = state};
  });
  const std::lock_guard lock(mutex_);
  reads_.push_back({.worker = worker, .value = value, .result = result});
  return result;
}

std::vector<ValueRead> ValueReads::to_ask(size_t worker, SessionId session) {
  std::vector<ValueRead> asked;
  const std::lock_guard lock(mutex_);
  for (ValueRead& one : reads_) {
    if (one.worker != worker || one.asked_in == session) continue;
    one.asked_in = session;
    asked.push_back(one);
  }
  return asked;
}

std::vector<ValueRead> ValueReads::take_all(size_t worker) {
  std::vector<ValueRead> taken;
  const std::lock_guard lock(mutex_);
  const auto first = std::stable_partition(
      reads_.begin(), reads_.end(), [&](const ValueRead& one) { return one.worker != worker; });
  std::move(first, reads_.end(), std::back_inserter(taken));
  reads_.erase(first, reads_.end());
  return taken;
}

void ValueReads::take(const std::shared_ptr<RemoteResult>& result) {
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [&](const ValueRead& one) { return one.result == result; });
}

void ValueReads::drop_unwanted() {
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [](const ValueRead& one) { return one.result.use_count() == 1; });
}

void ValueReads::end(const std::exception_ptr& error) {
  std::vector<ValueRead> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(reads_);
  }
  for (const ValueRead& one : ended) one.result->fail(error);
}

}  // namespace cohort::internal
