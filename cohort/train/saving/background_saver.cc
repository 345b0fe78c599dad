#include "cohort/train/saving/background_saver.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenWarnings = std::chrono::seconds(10);

void log_failure(const std::string& path, const std::exception_ptr& error) {
  if (error == nullptr) return;
  log(logging::Level::kError, "checkpoint '", path,
      "' was not saved: ", record_error(error).message);
}

}  // namespace

BackgroundSaver::BackgroundSaver(milliseconds most_wait) : most_wait_(most_wait) {}

BackgroundSaver::~BackgroundSaver() {
  if (thread_ == nullptr) return;
  if (wait_for_end()) {
    log_failure(path_, thread_->take_error());
  } else {
    thread_->leave([path = path_](const std::exception_ptr& error) { log_failure(path, error); });
  }
}

bool BackgroundSaver::wait_for_end() {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + bounded_wait(most_wait_);
  for (Clock::time_point next = begin + kBetweenWarnings;
       !thread_->wait_until(std::min(next, deadline)); next += kBetweenWarnings) {
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    const std::string what = str("checkpoint '", path_, "' is still being written after ",
                                 waited.count(), " ms; is the disk stuck?");
    const bool is_over = Clock::now() >= deadline;
    log(is_over ? logging::Level::kError : logging::Level::kWarning, what,
        is_over ? " Nobody waits for it any more." : "");
    if (is_over) return false;
  }
  return true;
}

void BackgroundSaver::check_process() const {
  if (thread_ != nullptr) home_.check("a checkpoint that saves asynchronously");
}

void BackgroundSaver::start(std::string path, std::function<void()> job) {
  check_process();
  if (thread_ == nullptr) {
    home_ = HomeProcess();
    thread_ = std::make_unique<WorkerThread>(str("to save '", path, "' with"), "cohort/save");
  }
  path_ = std::move(path);
  thread_->start(std::move(job));
}

std::optional<std::string> BackgroundSaver::wait_for(milliseconds timeout) {
  check_process();
  if (thread_ == nullptr) return std::nullopt;
  if (!thread_->wait_until(Clock::now() + bounded_wait(timeout))) {
    return str("checkpoint '", path_, "' is still being written after ", timeout.count(),
               " ms; is the disk stuck?");
  }
  if (const auto error = thread_->take_error()) std::rethrow_exception(error);
  return std::nullopt;
}

void BackgroundSaver::wait(milliseconds timeout) {
  if (const auto still_under_way = wait_for(timeout)) throw DeadlineExceededError(*still_under_way);
}

}  // namespace cohort::internal
