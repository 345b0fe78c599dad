#include "cohort/parameter_server/runner/early_failure.h"

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/runner/published_calls.h"

namespace cohort::internal {
namespace {

using std::chrono::steady_clock;

// For tasks that are a little slower, after the first failure.
constexpr std::chrono::seconds kMostToCome{4};
constexpr std::chrono::milliseconds kLookForTasks{50};
constexpr std::chrono::seconds kMostToTell{2};

std::exception_ptr failure_of(const distribute::Server& server, const char* when,
                              const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  const std::string self = to_string(server.task());
  return rpc::make_error(record.code, str(self, " has failed", when, ": ", record.message), self,
                         {.peer = self, .cause = Cause::kProgramFailed});
}

constexpr char kBeforeItsFirstStep[] = " before its first step";

// It is the first call's result, for which those that have come wait.
void tell_others(distribute::Server& server, const std::exception_ptr& error) {
  try {
    PublishedCalls calls;
    calls.add(server.coordination(), 1,
              {.name = "", .generation = 0, .value = {}, .error = error, .is_last = true});
    calls.wait_until_taken(server.coordination(), steady_clock::now() + kMostToTell);
  } catch (const Error& other) {
    log_info(untold_text("the other tasks", error, other));
  }
}

}  // namespace

std::string untold_text(const char* whom, const std::exception_ptr& error,
                        const std::exception& why) {
  const std::string message = record_error(error).message;
  const std::string text =
      str("this task has failed: ", message, ". It could not tell ", whom,
          ", who learn of it by its silence (start_timeout, heartbeat_timeout)");
  if (message == why.what()) return text + ": that needs what it has failed to get";
  return str(text, ": ", why.what());
}

void tell_failure(distribute::Server& server, const std::exception_ptr& error) {
  server.coordination().report(failure_of(server, kBeforeItsFirstStep, error));
}

void tell_failure_again(distribute::Server& server, const std::exception_ptr& error) {
  server.core().membership().agent().report(failure_of(server, kBeforeItsFirstStep, error),
                                            kMostToTell);
}

void tell_end(distribute::Server& server, const std::exception_ptr& error) {
  server.core().membership().agent().report(failure_of(server, "", error), kMostToTell);
}

void tell_own_failure(distribute::Server& server, const std::exception_ptr& error) {
  tell_others(server, failure_of(server, kBeforeItsFirstStep, error));
}

std::shared_ptr<const ReportedFailures> wait_for_tasks(distribute::Server& server) {
  auto told = std::make_shared<ReportedFailures>();
  server.coordination().on_error([told](const std::exception_ptr& error) { told->note(error); });
  while (server.core().membership().agent().wait_for_start(kLookForTasks) == nullptr) {
    if (const std::exception_ptr error = told->first_older_than(kMostToCome)) {
      tell_others(server, error);
      std::rethrow_exception(error);
    }
  }
  return told;
}

}  // namespace cohort::internal
