#include "cohort/parameter_server/leadership/early_failure.h"

#include <chrono>
#include <memory>
#include <mutex>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/runner/published_calls.h"

namespace cohort::internal {
namespace {

using std::chrono::steady_clock;

constexpr char kFailed[] = "failed before its first step";
// For tasks that are a little slower, after the first failure.
constexpr std::chrono::seconds kMostToCome{4};
constexpr std::chrono::milliseconds kLookForTasks{50};
constexpr std::chrono::seconds kMostToTell{2};

// The first failure that was told. Thread safety: any thread.
class ToldFailure {
 public:
  void note(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) return;
    error_ = error;
    told_ = steady_clock::now();
  }
  // Null while there is none, or it is younger.
  std::exception_ptr older_than(steady_clock::duration age) const {
    const std::lock_guard lock(mutex_);
    return error_ != nullptr && steady_clock::now() - told_ >= age ? error_ : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_, as is what follows
  steady_clock::time_point told_;
};

std::exception_ptr failure_of(const distribute::Server& server, const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  const std::string self = to_string(server.task());
  return rpc::make_error(record.code, str(self, " has ", kFailed, ": ", record.message), self,
                         {.peer = self, .phase = kFailed});
}

// It is the first call's result, for which those that have come wait.
void tell_others(distribute::Server& server, const std::exception_ptr& error) {
  try {
    PublishedCalls calls;
    calls.add(server.coordination(), 1,
              {.name = "", .generation = 0, .value = {}, .error = error, .is_last = true});
    calls.wait_until_taken(server.coordination(), steady_clock::now() + kMostToTell);
  } catch (const Error& other) {
    log_info("the other tasks were not told of an error: ", other.what());
  }
}

}  // namespace

void tell_failure(distribute::Server& server, const std::exception_ptr& error) {
  server.coordination().report(failure_of(server, error));
}

void tell_own_failure(distribute::Server& server, const std::exception_ptr& error) {
  tell_others(server, failure_of(server, error));
}

void wait_for_tasks(distribute::Server& server) {
  const auto told = std::make_shared<ToldFailure>();
  server.coordination().on_error([told](const std::exception_ptr& error) {
    if (rpc::detail_of(error).phase != kFailed) return;
    log_warning(record_error(error).message);
    told->note(error);
  });
  while (server.core().membership().agent().wait_for_start(kLookForTasks) == nullptr) {
    if (const std::exception_ptr error = told->older_than(kMostToCome)) {
      tell_others(server, error);
      std::rethrow_exception(error);
    }
  }
}

}  // namespace cohort::internal
