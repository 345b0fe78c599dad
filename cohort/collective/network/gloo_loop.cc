#include "cohort/collective/network/gloo_loop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/host/event_fd.h"
#include "cohort/core/text.h"

namespace cohort::collective {

namespace {

// Whether there was something to read.
bool take_count(const internal::UniqueFd& descriptor) {
  uint64_t count = 0;
  return ::read(descriptor.get(), &count, sizeof count) == sizeof count;
}

}  // namespace

GlooLoop::GlooLoop(gloo::Context& context, Failed failed, Due due)
    : device_(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(context.getDevice())),
      failed_(std::move(failed)),
      due_(std::move(due)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!event_.valid() || !timer_.valid()) {
    throw ResourceExhaustedError(
        internal::str("cannot make an event or a timer: ", internal::errno_text(errno)));
  }
  device_->registerDescriptor(event_.get(), EPOLLIN, this);
  device_->registerDescriptor(timer_.get(), EPOLLIN, this);
}

GlooLoop::~GlooLoop() {
  stop();
  device_->unregisterDescriptor(timer_.get(), this);
  device_->unregisterDescriptor(event_.get(), this);
  const std::lock_guard lock(run_mutex_);  // for ThreadSanitizer, which does not see how Gloo waits
}

void GlooLoop::start(std::vector<Start>& starts) {
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.insert(queue_.end(), starts.begin(), starts.end());
  }
  starts.clear();
  internal::signal_event(event_.get());
}

void GlooLoop::call_at(Clock::time_point time) {
  using std::chrono::nanoseconds;
  itimerspec setting{};
  if (time != kNever) {
    // Zeros would be no time at all.
    const auto left = std::max(nanoseconds(time - Clock::now()), nanoseconds(1));
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    setting.it_value = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
  }
  ::timerfd_settime(timer_.get(), 0, &setting, nullptr);
}

void GlooLoop::stop() {
  const std::lock_guard lock(run_mutex_);
  stopped_ = true;
}

void GlooLoop::handleEvents(int /*events*/) {
  const std::lock_guard lock(run_mutex_);
  if (take_count(timer_)) call_at(due_());
  if (!take_count(event_) || stopped_) return;
  running_.clear();
  {
    const std::lock_guard queue_lock(queue_mutex_);
    running_.swap(queue_);
  }
  for (const Start& one : running_) {
    try {
      one.sends ? one.buffer->send(one.rank, one.slot) : one.buffer->recv(one.rank, one.slot);
    } catch (const std::exception& error) {
      failed_(one.rank, error.what());
      return;
    }
  }
}

}  // namespace cohort::collective
