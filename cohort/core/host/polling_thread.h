// A thread that waits for descriptors with poll(2), until its owner stops it.
//
//   PollingThread thread_;   // the last member
//   thread_.start("to accept connections with", "cohort-accept", [this] {
//     pollfd watched[] = {thread_.stop(), {socket_.get(), POLLIN, 0}};
//     while (thread_.poll(watched)) {
//       if (watched[1].revents != 0) accept();
//     }
//   });
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <thread>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Thread safety: start() and end() by one thread at a time; the rest is for the thread itself.
class PollingThread {
 public:
  // Errors: ResourceExhausted (no descriptor).
  PollingThread();
  ~PollingThread() { end(); }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  // `purpose` goes on after "no thread "; `name` has at most 15 characters. Errors:
  // ResourceExhausted (no thread).
  void start(std::string_view purpose, const char* name, std::function<void()> run);
  // Stops the thread and waits until `run` has returned. Calls after the first do nothing.
  void end();

  // The first descriptor to poll.
  pollfd stop() const { return {stop_event_.get(), POLLIN, 0}; }
  // Waits until one of them is ready, or for `milliseconds` (-1: without end). False: the thread is
  // to return. A signal ends the wait, too.
  static bool poll(std::span<pollfd> watched, int milliseconds = -1);
  // Waits for nothing but the stop. False: the thread is to return.
  bool pause(std::chrono::milliseconds length) const;

 private:
  UniqueFd stop_event_;
  std::thread thread_;
};

}  // namespace cohort::internal
