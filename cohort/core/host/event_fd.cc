#include "cohort/core/host/event_fd.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "cohort/core/host/posix_error.h"

namespace cohort::internal {

UniqueFd make_event_fd() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) throw_errno(errno, "making an eventfd");
  return event;
}

}  // namespace cohort::internal
