#include "cohort/core/files/posix_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "cohort/core/files/posix_io.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/process.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr int kMostAttempts = 16;
constexpr size_t kMostOwnerBytes = 256;  // of what a holder wrote, in an error's text

// Whether the path names the open file.
// Errors: those of looking at the path, such as a broken disk's.
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
  PosixLock(UniqueFd fd, std::string path, bool excludes_others)
      : fd_(std::move(fd)), path_(std::move(path)), excludes_others_(excludes_others) {}
  // A child of fork holds no lock, only its parent does. If the lock excludes nobody, the file may
  // also be another writer's, whose next save would miss it.
  ~PosixLock() override {
    if (!home_.is_here() || !excludes_others_) return;
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
  const bool excludes_others_;
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

std::string read_owner(int fd) {
  std::array<char, kMostOwnerBytes> owner;
  const Transfer read = read_all(fd, 0, owner.data(), owner.size());
  std::string_view text(owner.data(), read.bytes);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

// An errno, 0 for success.
int try_flock(int fd, int operation) {
  return retry_eintr([&] { return ::flock(fd, operation | LOCK_NB); }) == 0 ? 0 : errno;
}

// ENOLCK: an NFS server whose lock daemon does not run.
bool says_there_are_no_locks(int error) { return error == ENOLCK || is_unsupported(error); }

// Once for each file system.
void warn_of_no_locks(int error, int fd, const std::string& path) {
  static std::mutex mutex;
  static std::set<dev_t> warned;  // guarded by mutex
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  const std::lock_guard lock(mutex);
  if (!warned.insert(status.st_dev).second) return;
  const char* const name = ::strerrorname_np(error);
  log_warning("the file system of ", quoted(path),
              " has no locks (flock: ", name != nullptr ? name : "ENOTSUPP",
              "): nothing keeps a second process from writing there at the same time, which would "
              "destroy the work of both. Start one only, or have it mounted with locks (Lustre: "
              "-o flock)");
}

[[noreturn]] void throw_held(int fd, const std::string& path) {
  const std::string text = read_owner(fd);
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
    const int error = try_flock(fd.get(), LOCK_EX);
    if (error == EWOULDBLOCK) {
      // A caller that asks for the holder shares the lock for a moment; a holder shares it with
      // nobody.
      if (try_flock(fd.get(), LOCK_SH) != 0) throw_held(fd.get(), path);
      std::this_thread::yield();
      continue;
    }
    const bool has_locks = !says_there_are_no_locks(error);
    if (!has_locks) {
      warn_of_no_locks(error, fd.get(), path);
    } else if (error != 0) {
      throw_errno(error, "locking " + quoted(path));
    }
    // Somebody may have removed or replaced the file between the open and the lock.
    if (!names(path, fd.get())) continue;
    write_owner(fd.get(), path, owner);
    return std::make_unique<PosixLock>(std::move(fd), path, has_locks);
  }
  throw AbortedError(str(quoted(path), " was replaced ", kMostAttempts,
                         " times while it was being locked; find out who removes lock files"));
}

std::optional<std::string> posix_lock_holder(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const UniqueFd fd(retry_eintr([&] { return ::open(path.c_str(), kFlags); }));
  if (!fd.valid() || try_flock(fd.get(), LOCK_SH) != EWOULDBLOCK) return std::nullopt;
  return read_owner(fd.get());
}

}  // namespace cohort::internal
