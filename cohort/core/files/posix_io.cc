#include "cohort/core/files/posix_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>

#include "cohort/core/host/posix_error.h"

namespace cohort::internal {
namespace {

// The kernel sends SIGXFSZ to the writing thread beside reporting EFBIG, and by default that ends
// the process. Held back for this thread while it lives, then taken away.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalBlocked() {
    const int saved = errno;
    constexpr timespec kAtOnce{};
    if (!was_pending_) retry_eintr([&] { return ::sigtimedwait(&signal_, nullptr, &kAtOnce); });
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace

Transfer write_all(int fd, std::string_view bytes) {
  const FileSizeSignalBlocked blocked;
  Transfer done;
  while (done.bytes < bytes.size()) {
    const ssize_t count = retry_eintr(
        [&] { return ::write(fd, bytes.data() + done.bytes, bytes.size() - done.bytes); });
    // A device that takes nothing and says nothing would keep us here for ever.
    if (count <= 0) {
      done.error_number = count == 0 ? EIO : errno;
      break;
    }
    done.bytes += static_cast<size_t>(count);
  }
  return done;
}

Transfer read_all(int fd, uint64_t offset, void* out, size_t length) {
  auto* to = static_cast<char*>(out);
  Transfer done;
  while (done.bytes < length) {
    const ssize_t count = retry_eintr([&] {
      return ::pread(fd, to + done.bytes, length - done.bytes,
                     static_cast<off_t>(offset + done.bytes));
    });
    if (count < 0) done.error_number = errno;
    if (count <= 0) break;
    done.bytes += static_cast<size_t>(count);
  }
  return done;
}

int reserve_space(int fd, uint64_t bytes) {
  const FileSizeSignalBlocked blocked;
  if (retry_eintr([&] { return ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)); }) == 0) return 0;
  const bool unable = is_unsupported(errno) || errno == EINVAL;
  return unable ? 0 : errno;
}

int set_size(int fd, uint64_t bytes) {
  const FileSizeSignalBlocked blocked;
  return retry_eintr([&] { return ::ftruncate(fd, static_cast<off_t>(bytes)); }) == 0 ? 0 : errno;
}

}  // namespace cohort::internal
