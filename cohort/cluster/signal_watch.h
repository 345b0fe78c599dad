// Waits for SIGTERM and SIGINT, without a thread and without doing anything in a handler that a
// handler may not do.
#pragma once

#include "cohort/core/program/process.h"

namespace cohort::internal {

// While any of them lives, the two signals are noted instead of ending the process; the handlers
// that were there come back with the end of the last. A child of fork that gets one does what they
// would do, as it is not the one that watches; it may make a watch of its own. Thread safety: any thread.
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

// While any of them lives, SIGTERM is theirs: SignalWatches do not see it, so that a task which saves
// before it ends is not stopped by its own server meanwhile. One that nobody has answered stays for
// the next watch: the machine is going away all the same. Thread safety: any thread.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  // Readable once SIGTERM has come; nobody reads from it.
  int descriptor() const;
  bool has_come() const;
  // What had to be done has been done: a later watch does not see the signal.
  void answer();

 private:
  const HomeProcess home_;
};

}  // namespace cohort::internal
