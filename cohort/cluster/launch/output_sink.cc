#include "cohort/cluster/launch/output_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// A terminal or pipe that says it is writable takes this many bytes without blocking.
constexpr size_t kSmallWrite = 256;

// Opens the file of a descriptor anew. O_NONBLOCK belongs to the open file, which other processes
// (the shell) share, so that this process needs an open file of its own. The result is invalid if
// there can be none: for a regular file (whose position would be lost, and which never blocks), a
// socket, another user's terminal, and what is open for reading alone (which stands in for a closed
// descriptor: unique_fd.h).
UniqueFd reopened(int fd) {
  struct stat status {};
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return UniqueFd();
  if (::fstat(fd, &status) != 0 || !(S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))) {
    return UniqueFd();
  }
  return UniqueFd(
      ::open(str("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_regular(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

OutputSink::OutputSink(int fd)
    : own_(reopened(fd)),
      fd_(own_.valid() ? own_.get() : fd),
      most_per_write_(own_.valid() || is_regular(fd) ? std::numeric_limits<size_t>::max()
                                                     : kSmallWrite) {}

void OutputSink::add(std::string_view lines) {
  if (lost_) return;
  pending_.erase(0, written_);
  written_ = 0;
  pending_ += lines;
  write_some();
}

void OutputSink::write_some() {
  while (written_ < pending_.size()) {
    pollfd writable = {fd_, POLLOUT, 0};
    if (::poll(&writable, 1, 0) == 0) return;
    const size_t size = std::min(most_per_write_, pending_.size() - written_);
    const ssize_t count = ::write(fd_, pending_.data() + written_, size);
    if (count >= 0) {
      written_ += static_cast<size_t>(count);
      is_failing_ = false;
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      on_error(errno);
      break;
    }
  }
  pending_.clear();
  written_ = 0;
}

// The tasks go on. After a full disk, their output goes on as soon as there is room.
void OutputSink::on_error(int error) {
  lost_ = error == EPIPE;
  if (lost_ || std::exchange(is_failing_, true)) return;
  log(logging::Level::kError,
      "output of the tasks cannot be written, and is lost until it can: ", errno_text(error));
}

bool is_same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace cohort::internal
