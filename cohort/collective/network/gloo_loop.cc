#include "cohort/collective/network/gloo_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::collective {

GlooLoop::GlooLoop(gloo::Context& context, Failed failed)
    : device_(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(context.getDevice())),
      failed_(std::move(failed)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) {
    throw ResourceExhaustedError(internal::str("cannot make an event: ", std::strerror(errno)));
  }
  device_->registerDescriptor(event_.get(), EPOLLIN, this);
}

GlooLoop::~GlooLoop() {
  stop();
  device_->unregisterDescriptor(event_.get(), this);
}

void GlooLoop::start(std::vector<Start>& starts) {
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.insert(queue_.end(), starts.begin(), starts.end());
  }
  starts.clear();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void GlooLoop::stop() {
  const std::lock_guard lock(run_mutex_);
  stopped_ = true;
}

void GlooLoop::handleEvents(int /*events*/) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
  const std::lock_guard lock(run_mutex_);
  if (stopped_) return;
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
