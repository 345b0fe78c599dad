#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/posix_io.h"
#include "cohort/core/files/posix_lock.h"
#include "cohort/core/files/posix_readable_file.h"
#include "cohort/core/files/posix_writable_file.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// A file, a left-over link or nothing: never a device that happens to have the name.
void remove_left_over(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    throw_errno(errno, "examining " + quoted(path));
  }
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    throw InvalidArgumentError(
        str(quoted(path), " cannot be written: there is something that is not a regular file"));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "removing the left-over " + quoted(path));
  }
}

UniqueFd open_directory(const std::string& path) {
  return UniqueFd(
      retry_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
}

// Returns an errno, 0 for success. Some file systems say EINVAL, or that there is no such
// operation, because their directories need no sync.
int sync_open_directory(const UniqueFd& fd) {
  if (retry_eintr([&] { return ::fsync(fd.get()); }) == 0 || errno == EINVAL) return 0;
  return is_unsupported(errno) ? 0 : errno;
}

// The entry of a directory that was there: a process that made it may have been killed before it
// synced. Only as far as we may, for it may as well be one of the system's.
void sync_entry_if_allowed(const std::string& path) {
  const UniqueFd fd = open_directory(parent_directory(path));
  if (!fd.valid()) return;
  const int error = sync_open_directory(fd);
  if (error != 0 && error != EROFS) {
    throw_errno(error, "syncing directory " + quoted(parent_directory(path)));
  }
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path,
                                       const CreateOptions& options) override {
    remove_left_over(path);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd fd(retry_eintr([&] { return ::open(path.c_str(), kFlags, options.mode); }));
    if (!fd.valid()) throw_errno(errno, "creating " + quoted(path));
    try {
      return std::make_unique<PosixWritableFile>(std::move(fd), path, options);
    } catch (...) {
      ::unlink(path.c_str());
      throw;
    }
  }

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    // O_NONBLOCK: opening a pipe would wait for whoever writes to it.
    UniqueFd fd(
        retry_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!fd.valid()) throw_errno(errno, "opening " + quoted(path));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw_errno(errno, "examining " + quoted(path));
    if (!S_ISREG(status.st_mode)) {
      throw InvalidArgumentError(
          str(quoted(path), " cannot be read: it is ",
              S_ISDIR(status.st_mode) ? "a directory" : "not a regular file"));
    }
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // a wish: its error changes nothing
    return std::make_unique<PosixReadableFile>(std::move(fd), path,
                                               static_cast<uint64_t>(status.st_size));
  }

  bool exists(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return true;
    if (errno_code(errno) == Code::kNotFound) return false;
    throw_errno(errno, "looking for " + quoted(path));
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      throw_errno(errno, str("renaming ", quoted(from), " to ", quoted(to)));
    }
  }

  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) throw_errno(errno, "removing " + quoted(path));
  }

  void remove_directory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) throw_errno(errno, "removing directory " + quoted(path));
  }

  std::vector<std::string> list(const std::string& directory) override {
    UniqueFd fd = open_directory(directory);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd.valid() ? ::fdopendir(fd.get()) : nullptr,
                                                     ::closedir);
    if (!stream) throw_errno(errno, "listing " + quoted(directory));
    fd.release();  // closedir closes it
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr && errno != 0) throw_errno(errno, "listing " + quoted(directory));
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // A directory gets a child only after its own entry is durable. So, whatever was broken off, of
  // the directories that are there only the deepest may still be unsafe.
  void make_directories(const std::string& path) override {
    if (is_directory(path)) return sync_entry_if_allowed(path);
    const std::string parent = parent_directory(path);
    if (parent != path) make_directories(parent);
    if (::mkdir(path.c_str(), 0777) != 0) {
      const int error = errno;
      const bool made_by_another = error == EEXIST && is_directory(path);
      if (!made_by_another) throw_errno(error, "making directory " + quoted(path));
    }
    sync_directory(parent);
  }

  void sync_directory(const std::string& path) override {
    const UniqueFd fd = open_directory(path);
    if (!fd.valid()) throw_errno(errno, "opening directory " + quoted(path));
    if (int error = sync_open_directory(fd)) {
      throw_errno(error, "syncing directory " + quoted(path));
    }
  }

  std::unique_ptr<FileLock> lock(const std::string& path, std::string_view owner) override {
    return posix_lock(path, owner);
  }

  std::optional<std::string> lock_holder(const std::string& path) override {
    return posix_lock_holder(path);
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem& files = *new PosixFileSystem;  // outlives what uses it after main
  return files;
}

}  // namespace cohort::internal
