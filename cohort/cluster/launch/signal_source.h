// The signals that end a job, as the launcher reads them.
#pragma once

#include <signal.h>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// SIGINT, SIGTERM, SIGHUP and SIGQUIT, as readable descriptors for as long as it lives. Without
// SIGPIPE and SIGXFSZ: a reader that goes away, or a log that may not grow, does not end the
// launcher, and by that the tasks.
// Thread safety: none; for the thread that made it.
class SignalSource {
 public:
  // Errors: ResourceExhausted (no descriptor).
  SignalSource();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  int fd() const { return fd_.get(); }
  // The next one that has come; 0: none.
  int next();

 private:
  UniqueFd fd_;
  sigset_t before_;
  struct sigaction pipe_before_ {};
  struct sigaction size_before_ {};
};

}  // namespace cohort::internal
