// Waits for SIGTERM and SIGINT, without a thread and without doing anything in a handler that a
// handler may not do.
#pragma once

namespace cohort::internal {

// While any of them lives, the two signals are noted instead of ending the process; the handlers
// that were there come back with the end of the last. Thread safety: any thread.
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
};

// While any of them lives, SIGTERM is theirs: SignalWatches do not see it, so that a task which saves
// before it ends is not stopped by its own server meanwhile. Thread safety: any thread.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  // Readable once SIGTERM has come; nobody reads from it.
  int descriptor() const;
  bool has_come() const;
};

}  // namespace cohort::internal
