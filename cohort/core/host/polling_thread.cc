#include "cohort/core/host/polling_thread.h"

#include <pthread.h>

#include <utility>

#include "cohort/core/host/event_fd.h"
#include "cohort/core/program/start_thread.h"

namespace cohort::internal {

PollingThread::PollingThread() : stop_event_(make_event_fd()) {}

void PollingThread::start(std::string_view purpose, const char* name, std::function<void()> run) {
  thread_ = start_thread(purpose, [name, run = std::move(run)] {
    ::pthread_setname_np(::pthread_self(), name);
    run();
  });
}

void PollingThread::end() {
  if (!thread_.joinable()) return;
  signal_event(stop_event_.get());
  thread_.join();
}

bool PollingThread::poll(std::span<pollfd> watched, int milliseconds) {
  if (::poll(watched.data(), watched.size(), milliseconds) < 0) {  // EINTR
    for (pollfd& one : watched) one.revents = 0;
  }
  return watched.front().revents == 0;
}

bool PollingThread::pause(std::chrono::milliseconds length) const {
  pollfd only = stop();
  return poll({&only, 1}, static_cast<int>(length.count()));
}

}  // namespace cohort::internal
