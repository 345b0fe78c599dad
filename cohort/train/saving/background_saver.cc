#include "cohort/train/saving/background_saver.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"
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

// What the thread works on; it may outlive the saver.
struct BackgroundSaver::Shared {
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::string path;           // guarded by mutex, as all that follows
  std::function<void()> job;  // empty: none under way
  std::exception_ptr error;
  bool stop = false;
  bool left_alone = false;  // nobody waits for it any more
  bool ended = false;
};

BackgroundSaver::BackgroundSaver(milliseconds most_wait)
    : most_wait_(most_wait), shared_(std::make_shared<Shared>()) {}

BackgroundSaver::~BackgroundSaver() {
  if (!thread_.joinable()) return;
  if (!wait_for_end()) {
    thread_.detach();
    return;
  }
  thread_.join();
  log_failure(shared_->path, shared_->error);
}

// Returns false where it has left the thread alone.
bool BackgroundSaver::wait_for_end() {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + bounded_wait(most_wait_);
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  const auto has_ended = [this] { return shared_->ended; };
  for (Clock::time_point next = begin + kBetweenWarnings;
       !shared_->changed.wait_until(lock, std::min(next, deadline), has_ended);
       next += kBetweenWarnings) {
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    const std::string what = str("checkpoint '", shared_->path, "' is still being written after ",
                                 waited.count(), " ms; is the disk stuck?");
    shared_->left_alone = Clock::now() >= deadline;
    log(shared_->left_alone ? logging::Level::kError : logging::Level::kWarning, what,
        shared_->left_alone ? " Nobody waits for it any more." : "");
    if (shared_->left_alone) return false;
  }
  return true;
}

void BackgroundSaver::check_process() const {
  if (thread_.joinable()) home_.check("a checkpoint that saves asynchronously");
}

void BackgroundSaver::start(std::string path, std::function<void()> job) {
  check_process();
  if (!thread_.joinable()) {
    home_ = HomeProcess();
    thread_ =
        start_thread(str("to save '", path, "' with"), [shared = shared_] { shared->work(); });
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->path = std::move(path);
    shared_->job = std::move(job);
  }
  shared_->changed.notify_all();
}

void BackgroundSaver::Shared::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stop || job; });
    if (!job) break;
    lock.unlock();
    std::exception_ptr own_error;
    try {
      job();
    } catch (...) {
      own_error = std::current_exception();
    }
    lock.lock();
    if (left_alone) log_failure(path, own_error);
    error = std::move(own_error);
    std::function<void()> done = std::exchange(job, nullptr);
    changed.notify_all();
    lock.unlock();
    done = nullptr;  // what it holds may be the last of its kind
    lock.lock();
  }
  ended = true;
  changed.notify_all();
}

std::optional<std::string> BackgroundSaver::wait_for(milliseconds timeout) {
  check_process();
  std::unique_lock lock(shared_->mutex);
  if (!shared_->changed.wait_for(lock, bounded_wait(timeout), [&] { return !shared_->job; })) {
    return str("checkpoint '", shared_->path, "' is still being written after ", timeout.count(),
               " ms; is the disk stuck?");
  }
  const std::exception_ptr error = std::exchange(shared_->error, nullptr);
  lock.unlock();
  if (error != nullptr) std::rethrow_exception(error);
  return std::nullopt;
}

void BackgroundSaver::wait(milliseconds timeout) {
  if (const auto still_under_way = wait_for(timeout)) throw DeadlineExceededError(*still_under_way);
}

}  // namespace cohort::internal
