// The right to write checkpoints into a directory: one process at a time has it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Held from the first save into a directory until whoever saved there is gone; all savers of a
// process share it, and take turns. The lock ends with its process, however that ends.
// Thread safety: any thread.
class CheckpointDirectory {
 public:
  // Makes the directory if need be, and removes what writers left that died.
  // Errors: FailedPrecondition (another process writes there; names it), as FileSystem's.
  static std::shared_ptr<CheckpointDirectory> for_writing(FileSystem& files,
                                                          const std::string& path);

  // What another process that writes there says of itself, for whoever will save only much later;
  // nothing where there is none, or it cannot be told. Makes nothing.
  static std::optional<std::string> other_writer(FileSystem& files, const std::string& path);
  // Errors: FailedPrecondition (another process writes there; names it).
  static void check_no_other_writer(FileSystem& files, const std::string& path);

  // For the time of one save. Errors: FailedPrecondition (somebody removed or replaced the lock's
  // file: another process may be writing), DeadlineExceeded (another save of this process into the
  // directory takes longer than `timeout`).
  std::unique_lock<std::timed_mutex> begin_save(std::chrono::milliseconds timeout);
  // Errors: as begin_save. To be called again before what is saved becomes the latest.
  void check_still_ours() const;

 private:
  CheckpointDirectory(FileSystem& files, std::string path);

  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::timed_mutex mutex_;
};

}  // namespace cohort::internal
