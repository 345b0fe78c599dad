#include "cohort/core/files/posix_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "cohort/core/files/posix_error.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/files/unique_fd.h"
#include "cohort/core/process.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr int kMostAttempts = 16;
constexpr size_t kMostOwnerBytes = 256;  // of what a holder wrote, in an error's text

// Whether the path names the open file. What a broken disk says is no answer.
bool names(const std::string& path, int fd) {
  struct stat open_file {};
  struct stat named {};
  if (::fstat(fd, &open_file) != 0 || ::lstat(path.c_str(), &named) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ESTALE) return false;
    throw_errno(errno, "examining the lock file " + quoted(path));
  }
  return open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

class PosixLock final : public FileLock {
 public:
  PosixLock(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  // A child of a fork holds nothing: its parent does.
  ~PosixLock() override {
    if (!home_.is_here()) return;
    try {
      if (still_valid()) ::unlink(path_.c_str());
    } catch (const Error&) {  // a broken disk: the file stays, and hinders nobody
    }
  }
  bool still_valid() const override { return names(path_, fd_.get()); }

 private:
  const HomeProcess home_;
  UniqueFd fd_;
  const std::string path_;
};

UniqueFd open_lock_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(retry_eintr([&] { return ::open(path.c_str(), kFlags, 0600); }));
  if (!fd.valid()) throw_errno(errno, "opening the lock file " + quoted(path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_errno(errno, "examining " + quoted(path));
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgumentError(quoted(path) + " cannot be locked: it is not a regular file");
  }
  return fd;
}

[[noreturn]] void throw_held(int fd, const std::string& path) {
  std::array<char, kMostOwnerBytes> owner;
  const Transfer read = read_all(fd, 0, owner.data(), owner.size());
  const std::string_view text(owner.data(), read.bytes);
  throw FailedPreconditionError(
      str(quoted(path), " is locked", text.empty() ? "" : " by " + quoted(text),
          "; only one may write there at a time: stop the other or use another directory"));
}

void write_owner(int fd, const std::string& path, std::string_view owner) {
  int error = set_size(fd, 0);
  if (error == 0) error = write_all(fd, owner).error_number;
  if (error != 0) throw_errno(error, "writing to the lock file " + quoted(path));
}

}  // namespace

std::unique_ptr<FileLock> posix_lock(const std::string& path, std::string_view owner) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    UniqueFd fd = open_lock_file(path);
    if (retry_eintr([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) throw_held(fd.get(), path);
      throw_errno(errno, "locking " + quoted(path));
    }
    // Between the open and the lock somebody may have removed the file or put another there.
    if (!names(path, fd.get())) continue;
    write_owner(fd.get(), path, owner);
    return std::make_unique<PosixLock>(std::move(fd), path);
  }
  throw AbortedError(str(quoted(path), " was replaced ", kMostAttempts,
                         " times while it was being locked; find out who removes lock files"));
}

}  // namespace cohort::internal
