#include "cohort/cluster/signal_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace cohort::internal {
namespace {

constexpr int kWatched[] = {SIGTERM, SIGINT};

std::atomic<int> first_signal{0};
std::atomic<int> signal_event{-1};  // made once, never closed: a late handler may use it

std::mutex watch_mutex;
int num_watches = 0;
struct sigaction previous_actions[std::size(kWatched)];

extern "C" void cohort_note_signal(int signal) {
  const int saved_errno = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(signal_event.load(), &one, sizeof one);
  errno = saved_errno;
}

}  // namespace

SignalWatch::SignalWatch() {
  const std::lock_guard lock(watch_mutex);
  if (num_watches++ > 0) return;
  if (signal_event.load() < 0) signal_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = cohort_note_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kWatched); ++i) {
    ::sigaction(kWatched[i], &action, &previous_actions[i]);
  }
}

SignalWatch::~SignalWatch() {
  const std::lock_guard lock(watch_mutex);
  if (--num_watches > 0) return;
  for (size_t i = 0; i < std::size(kWatched); ++i) {
    ::sigaction(kWatched[i], &previous_actions[i], nullptr);
  }
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(signal_event.load(), &count, sizeof count);
  first_signal = 0;
}

int SignalWatch::descriptor() const { return signal_event.load(); }
int SignalWatch::signal() const { return first_signal.load(); }

}  // namespace cohort::internal
