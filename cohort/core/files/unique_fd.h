// Owns a file descriptor.
//
//   const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!fd.valid()) ...
#pragma once

#include <unistd.h>

#include <utility>

namespace cohort::internal {

class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
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
  // Whoever needs the errors of close() calls it on what release() gives.
  void reset() {
    if (fd_ >= 0) ::close(release());
  }

 private:
  int fd_;
};

}  // namespace cohort::internal
