#include "cohort/core/files/write_behind.h"

#include <pthread.h>

#include <utility>

#include "cohort/core/program/start_thread.h"

namespace cohort::internal {

WriteBehind::WriteBehind(std::function<void(std::string_view)> write)
    : write_(std::move(write)), block_(big_buffer()) {
  thread_ = start_thread("to write files with", [this] { run(); });
}

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WriteBehind::exchange(AlignedBuffer& buffer, size_t filled) {
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  std::swap(buffer, block_);
  filled_ = filled;
  changed_.notify_all();
}

void WriteBehind::drain() {
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
}

void WriteBehind::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return filled_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

void WriteBehind::run() {
  ::pthread_setname_np(::pthread_self(), "cohort/write");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || filled_ > 0; });
    if (stopping_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      write_({block_.get(), filled_});
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    filled_ = 0;
    changed_.notify_all();
  }
}

}  // namespace cohort::internal
