#include "cohort/train/checkpoint_directory.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle_writer.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kLockName = ".cohort-writer.lock";

// Who holds a lock, for whoever finds it held.
std::string describe_this_process() {
  char host[256] = "unknown host";
  gethostname(host, sizeof(host) - 1);
  char time[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return str("process ", getpid(), " on ", host, " since ", time, "\n");
}

// Those that this process writes to.
struct Registry {
  std::mutex mutex;
  std::map<std::pair<FileSystem*, std::string>, std::weak_ptr<CheckpointDirectory>> directories;
};
Registry& registry() {
  static Registry* registry = new Registry();  // outlives whatever saves at exit
  return *registry;
}

}  // namespace

std::shared_ptr<CheckpointDirectory> CheckpointDirectory::for_writing(FileSystem& files,
                                                                      const std::string& path) {
  const std::string key = std::filesystem::absolute(path).lexically_normal().string();
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::weak_ptr<CheckpointDirectory>& known = all.directories[{&files, key}];
  if (auto directory = known.lock()) return directory;
  std::shared_ptr<CheckpointDirectory> directory(new CheckpointDirectory(files, path));
  known = directory;
  return directory;
}

CheckpointDirectory::CheckpointDirectory(FileSystem& files, std::string path)
    : path_(std::move(path)) {
  files.make_directories(path_);
  try {
    lock_ = files.lock(join_path(path_, kLockName), describe_this_process());
  } catch (const FailedPreconditionError& error) {
    throw FailedPreconditionError(
        str("another process writes checkpoints into '", path_,
            "'; two writers would destroy each other's work, so save elsewhere or stop it: ",
            error.what()));
  }
  for (const std::string& name : files.list(path_)) {
    if (name.starts_with(kTemporaryPrefix)) files.remove(join_path(path_, name));
  }
}

void CheckpointDirectory::check_still_ours() const {
  if (lock_->still_valid()) return;
  throw FailedPreconditionError(
      str("the lock ", quoted(join_path(path_, kLockName)), " was removed or replaced while this ",
          "process held it: another one may be writing checkpoints there, so nothing was saved"));
}

std::unique_lock<std::mutex> CheckpointDirectory::begin_save() {
  std::unique_lock lock(mutex_);
  check_still_ours();
  return lock;
}

}  // namespace cohort::internal
