#include "cohort/cluster/launch/signal_source.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

SignalSource::SignalSource() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_.valid()) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw ResourceExhaustedError(str("cannot make a signalfd: ", errno_text(errno)));
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
  ::sigaction(SIGXFSZ, &ignore, &size_before_);
}

SignalSource::~SignalSource() {
  ::sigaction(SIGXFSZ, &size_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalSource::next() {
  signalfd_siginfo info;
  return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo)
                                                                : 0;
}

}  // namespace cohort::internal
