// Owns a file descriptor, never one of 0 to 2. A program that was started without them
// (`program >&-`), or has closed them, would print into the file that got the number.
//
//   const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!fd.valid()) ...
//
// standard_descriptors.cc keeps libraries, which open files and sockets too, from getting one.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cohort::internal {

class UniqueFd {
 public:
  // Takes `fd` over. Of one of 0 to 2 it owns a copy above them, and closes it; invalid, with
  // errno, where there can be no copy.
  explicit UniqueFd(int fd = -1) : fd_(fd < 0 || fd > STDERR_FILENO ? fd : above_standard(fd)) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // Ignores errors of close(). A caller that needs them calls close() on the result of release().
  void reset() {
    if (fd_ >= 0) ::close(release());
  }

 private:
  static int above_standard(int fd) noexcept {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(fd);
    errno = error;
    return copy;
  }

  int fd_;
};

}  // namespace cohort::internal
