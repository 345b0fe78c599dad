#include "cohort/core/files/read_ahead.h"

#include <utility>

#include "cohort/core/program/start_thread.h"

namespace cohort::internal {

ReadAhead::ReadAhead(Read read)
    : read_(std::move(read)), current_(big_buffer()), coming_(big_buffer()) {
  thread_ = start_thread("to read ahead with", [this] { run(); });
}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::run() {
  while (true) {
    size_t filled = 0;
    std::exception_ptr error;
    try {
      filled = read_(coming_.get(), kBigBufferBytes);
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    filled_ = filled;
    error_ = std::move(error);
    ready_ = true;
    ended_ = filled == 0;
    changed_.notify_all();
    if (ended_) return;
    changed_.wait(lock, [&] { return stopping_ || !ready_; });
    if (stopping_) return;
  }
}

std::string_view ReadAhead::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_; });
  if (error_) std::rethrow_exception(error_);
  if (ended_) return {};
  std::swap(current_, coming_);
  const size_t filled = filled_;
  ready_ = false;
  lock.unlock();
  changed_.notify_all();
  return {current_.get(), filled};
}

}  // namespace cohort::internal
