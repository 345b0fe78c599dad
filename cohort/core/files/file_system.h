// Files, as far as what must survive a crash needs them: writing, syncing, renaming, locking.
//
// An interface, so that tests can stop a save at any call, lose what was not synced, or fail any
// call with any errno. What reads or writes files that matter takes a FileSystem&.
//
//   FileSystem& files = posix_file_system();
//   auto file = files.create("dir/.a.tmp", {.expected_bytes = 4});
//   file->append("data");
//   file->sync();
//   file->close();
//   files.rename("dir/.a.tmp", "dir/a");
//   files.sync_directory("dir");               // only now is the name "a" safe
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// Errors of all calls here, by errno; the text names the call, the path and the errno: NotFound
// (ENOENT, ENOTDIR), AlreadyExists (EEXIST), PermissionDenied (EACCES, EPERM, EROFS, ELOOP),
// ResourceExhausted (ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE, ENOLCK), InvalidArgument
// (ENAMETOOLONG, EISDIR, EINVAL, EXDEV), FailedPrecondition (EBUSY, ETXTBSY, ENOTEMPTY),
// Unimplemented (ENOSYS, EOPNOTSUPP, ENOTSUPP), DataLoss (EIO and what else the device reports).
// EINTR is retried, short reads and writes are continued; a write beyond RLIMIT_FSIZE is EFBIG and
// ends nothing. No call waits for anything but the device; file_deadline.h limits how long.

// If a call of a file fails, the file is lost: it is to be given up.
// Thread safety: none.
class WritableFile {
 public:
  // Closes without a sync and without a word: only for files given up.
  virtual ~WritableFile() = default;

  virtual void append(std::string_view bytes) = 0;
  // Returns when all that was appended is on the device. A file whose sync failed is lost: the
  // kernel may have dropped the pages, so a second sync that succeeds would prove nothing.
  virtual void sync() = 0;
  // Errors are reported; afterwards only the destructor may be called.
  virtual void close() = 0;
};

// Thread safety: any thread.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  virtual uint64_t size() const = 0;
  // Whether another machine or process serves the file, as far as that is known: unlike a device of
  // this machine it may stop answering without an error.
  virtual bool is_remote() const { return false; }
  // Exactly `length` bytes from `offset` on. Errors: DataLoss (the file ends before, or EIO).
  virtual void read(uint64_t offset, void* out, size_t length) const = 0;
  // Reads the same bytes in order, block by block, as fast as they come: the next block is read
  // while `visit` works on one. The view that `visit` gets ends with the call.
  // Errors: also what `visit` throws.
  virtual void scan(uint64_t offset, uint64_t length,
                    const std::function<void(std::string_view)>& visit) const;
};

// A lock that is held until this object is destroyed, which removes the file, or until its process
// ends in whatever way.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether the path still names the locked file: false after somebody removed or replaced it, and
  // another process may hold what is there now. Errors: of looking at it.
  virtual bool still_valid() const = 0;
};

struct CreateOptions {
  // The size that is reserved at once, if the file system can do that, so that a full one is found
  // early. Big files (32 MiB) are written past the page cache.
  uint64_t expected_bytes = 0;
  uint32_t mode = 0600;  // who may read and write it, before the umask
};

// Paths are relative to the working directory or absolute. Thread safety: any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A new file; a left-over of that name is removed first, a symbolic link is
  // never followed. Errors: also InvalidArgument (there is a directory, device or pipe).
  virtual std::unique_ptr<WritableFile> create(const std::string& path,
                                               const CreateOptions& options = {}) = 0;
  // Errors: also InvalidArgument (not a regular file).
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Replaces `to` in one step: whoever looks sees the old file or the new one.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;
  // Errors: also FailedPrecondition (it is not empty).
  virtual void remove_directory(const std::string& path) = 0;
  // Names (not paths) of the entries of a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& directory) = 0;
  // Makes the directory and its parents, each durably. An existing directory is no error.
  virtual void make_directories(const std::string& path) = 0;
  // Makes durable what was created, renamed and removed in the directory.
  virtual void sync_directory(const std::string& path) = 0;

  // Locks a file, which is made if need be, and writes `owner` into it for others to read. The lock
  // excludes other processes and this one alike. Does not wait. On a file system without locks it
  // excludes nobody, which a warning says once for each file system.
  // Errors: FailedPrecondition (it is held; the text has what its holder wrote).
  virtual std::unique_ptr<FileLock> lock(const std::string& path, std::string_view owner) = 0;
  // What the holder of a lock wrote; nothing where nobody holds it, or the file system cannot tell.
  // Makes nothing, and takes the lock from nobody.
  virtual std::optional<std::string> lock_holder(const std::string& path) = 0;
};

// The operating system's.
FileSystem& posix_file_system();

// "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string parent_directory(std::string_view path);
// "c" of "a/b/c".
std::string base_name(std::string_view path);
// "a/b" of "a" and "b"; "b" if that is absolute or the directory is empty.
std::string join_path(std::string_view directory, std::string_view name);

}  // namespace cohort::internal
