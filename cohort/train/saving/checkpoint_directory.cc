#include "cohort/train/saving/checkpoint_directory.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/core/utc_text.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kLockName = ".cohort-writer.lock";

// Describes the holder of a lock for those who find it held.
std::string describe_this_process() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return str("process ", getpid(), " on ", host_name(), " since ", utc_text(now), "\n");
}

// The directories that this process writes to.
struct Registry {
  struct Entry {
    std::unique_ptr<CheckpointDirectory> directory;
    int users = 0;
  };
  std::mutex mutex;
  std::map<std::pair<FileSystem*, std::string>, Entry> directories;  // guarded by mutex
};
Registry& registry() {
  static Registry* registry = new Registry();  // outlives whatever saves at exit
  return *registry;
}

// A directory has many spellings; this is the same for all of them.
std::string one_spelling(const std::string& path) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!error) whole = std::filesystem::weakly_canonical(whole, error);
  if (error) throw_errno(error.value(), "examining " + quoted(path));
  std::string key = whole.string();
  while (key.size() > 1 && key.back() == '/') key.pop_back();
  return key;
}

[[noreturn]] void throw_other_writer(const std::string& path, std::string_view who) {
  throw FailedPreconditionError(
      str("another process writes checkpoints into '", path,
          "'; two writers would destroy each other's work, so save elsewhere or stop it: ", who));
}

}  // namespace

std::optional<std::string> CheckpointDirectory::other_writer(FileSystem& files,
                                                             const std::string& path) {
  const std::string key = one_spelling(path);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.directories.contains({&files, key})) return std::nullopt;
  return files.lock_holder(join_path(path, kLockName));
}

void CheckpointDirectory::check_no_other_writer(FileSystem& files, const std::string& path) {
  const std::string lock = join_path(path, kLockName);
  if (const auto who = other_writer(files, path)) {
    throw_other_writer(path, str(quoted(lock), " is locked by ", quoted(*who)));
  }
}

std::shared_ptr<CheckpointDirectory> CheckpointDirectory::for_writing(FileSystem& files,
                                                                      const std::string& path) {
  const std::string key = one_spelling(path);
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  const auto place = all.directories.try_emplace({&files, key}).first;
  Registry::Entry& entry = place->second;
  try {
    if (entry.users == 0) entry.directory.reset(new CheckpointDirectory(files, path));
  } catch (...) {
    all.directories.erase(place);
    throw;
  }
  ++entry.users;
  lock.unlock();
  // Users are counted here and not by weak_ptr, for which the last one is gone before its end has
  // begun: somebody who came then would find the directory unknown, and its lock taken.
  return {entry.directory.get(), [place](CheckpointDirectory*) {
            Registry& registered = registry();
            const std::lock_guard giving_up(registered.mutex);
            if (--place->second.users == 0) registered.directories.erase(place);
          }};
}

CheckpointDirectory::CheckpointDirectory(FileSystem& files, std::string path)
    : path_(std::move(path)) {
  files.make_directories(path_);
  try {
    lock_ = files.lock(join_path(path_, kLockName), describe_this_process());
  } catch (const FailedPreconditionError& error) {
    throw_other_writer(path_, error.what());
  }
  for (const std::string& name : files.list(path_)) {
    if (is_left_over(name)) files.remove(join_path(path_, name));
  }
}

void CheckpointDirectory::check_still_ours() const {
  if (lock_->still_valid()) return;
  throw FailedPreconditionError(
      str("the lock ", quoted(join_path(path_, kLockName)), " was removed or replaced while this ",
          "process held it: another one may be writing checkpoints there; save elsewhere"));
}

std::unique_lock<std::timed_mutex> CheckpointDirectory::begin_save(
    std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_, bounded_wait(timeout));
  if (!lock.owns_lock()) {
    throw DeadlineExceededError(str("another save into ", quoted(path_), " is not done after ",
                                    timeout.count(), " ms; is the disk stuck?"));
  }
  check_still_ours();
  return lock;
}

}  // namespace cohort::internal
