#include "cohort/core/host/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "cohort/core/host/posix_error.h"

namespace cohort::internal {

UniqueFd make_event_fd() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) throw_errno(errno, "making an eventfd");
  return event;
}

void signal_event(int event) noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
}

}  // namespace cohort::internal
