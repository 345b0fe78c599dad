// Waits for SIGTERM and SIGINT, without a thread and without doing anything in a handler that a
// handler may not do.
#pragma once

#include "cohort/core/program/process.h"

namespace cohort::internal {

// While any SignalWatch lives, the two signals are noted instead of ending the process. The
// handlers that were there come back with the end of the last watch. In a child of fork, which is
// not the one that watches, a signal does what these handlers would do; the child may make a watch
// of its own.
// Thread safety: any thread.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Readable once a signal has come; nobody reads from it.
  int descriptor() const;
  // The first that came; 0 before.
  int signal() const;

 private:
  const HomeProcess home_;
};

// While any TerminationWatch lives, SignalWatches do not see SIGTERM, so that a task which saves
// before it ends is not stopped by its own server meanwhile. A signal that nobody has answered
// stays for the next watch: the machine is going away all the same.
// Thread safety: any thread.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  // Readable once SIGTERM has come; nobody reads from it.
  int descriptor() const;
  bool has_come() const;
  // Says that the signal has been handled: a later watch does not see it.
  void answer();

 private:
  const HomeProcess home_;
};

}  // namespace cohort::internal
