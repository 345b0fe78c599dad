#include "cohort/train/background_saver.h"

#include <utility>

#include "cohort/core/bounded_wait.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/start_thread.h"

namespace cohort::internal {

BackgroundSaver::~BackgroundSaver() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (error_ == nullptr) return;
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& error) {
    log(logging::Level::kError, "checkpoint '", path_, "' was not saved: ", error.what());
  } catch (...) {
    log(logging::Level::kError, "checkpoint '", path_, "' was not saved");
  }
}

void BackgroundSaver::check_process() const {
  if (thread_.joinable()) home_.check("a checkpoint that saves asynchronously");
}

void BackgroundSaver::start(std::string path, std::function<void()> job) {
  check_process();
  if (!thread_.joinable()) {
    home_ = HomeProcess();
    thread_ = start_thread(str("to save '", path, "' with"), [this] { work(); });
  }
  {
    std::lock_guard lock(mutex_);
    path_ = std::move(path);
    job_ = std::move(job);
  }
  changed_.notify_all();
}

void BackgroundSaver::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || job_; });
    if (!job_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      job_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = std::move(error);
    std::function<void()> done = std::exchange(job_, nullptr);
    changed_.notify_all();
    lock.unlock();
    done = nullptr;  // what it holds may be the last of its kind
    lock.lock();
  }
}

void BackgroundSaver::wait(std::chrono::milliseconds timeout) {
  check_process();
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, bounded_wait(timeout), [&] { return !job_; })) {
      throw DeadlineExceededError(str("checkpoint '", path_, "' is still being written after ",
                                      timeout.count(), " ms; is the disk stuck?"));
    }
  }
  rethrow();
}

void BackgroundSaver::rethrow() {
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    if (!job_) error = std::exchange(error_, nullptr);
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace cohort::internal
