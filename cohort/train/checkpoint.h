// Saving and restoring objects, in the files of tf.train.Checkpoint.
//
//   train::Checkpoint checkpoint({{"optimizer", optimizer}, {"model", model}});
//   std::string path = checkpoint.save("training_checkpoints/ckpt");    // ".../ckpt-1"
//   ...
//   train::Checkpoint fresh({{"optimizer", new_optimizer}, {"model", new_model}});
//   fresh.restore(train::latest_checkpoint("training_checkpoints"));
//
// A save that returns has reached the disk: neither a crash nor a power cut takes it away, and none
// during a save takes away what was saved before. docs/checkpoints.md says how.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/train/checkpoint_status.h"
#include "cohort/train/trackable.h"

namespace cohort {
namespace internal {
class CheckpointImpl;
class FileSystem;
}  // namespace internal

namespace train {

struct CheckpointOptions {
  // Returns when the values are copied; a thread writes them. What goes wrong there is thrown by
  // the next call of save, write, restore, read or wait. Only one save is under way: the next waits
  // for it.
  bool enable_async = false;
  // How long to wait for a save that is under way.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // How long to wait for the other processes that save as one with this one (see save_group.h).
  std::chrono::milliseconds group_timeout = std::chrono::minutes(10);
};

struct RestoreOptions {
  // Where the checkpoint is damaged or gone, take the latest good one before it of the same name
  // and directory ("ckpt-4" before "ckpt-5"), and log a warning.
  bool fall_back = false;
  // How long to wait for a save that is under way.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // How long to wait for the other processes that restore as one with this one.
  std::chrono::milliseconds group_timeout = std::chrono::minutes(10);
};

using NamedObject = std::pair<std::string, TrackableHandle>;

// A handle: copies name the same checkpoint. It keeps its objects alive.
// Where its objects belong to a group of processes (see Trackable::save_group), save, write,
// restore and read are collective, and so is wait after an asynchronous save: every process calls
// them in the same order, and all return the same or throw the same. One of them writes, and its
// path counts.
// Errors of saves: FailedPrecondition (in a step; another process writes into the directory),
// ResourceExhausted (disk full), DataLoss (disk faulty), PermissionDenied, NotFound,
// DeadlineExceeded (the save before it takes too long), and those of an earlier asynchronous save.
// Errors of restores: NotFound (no such checkpoint), DataLoss (damaged), InvalidArgument (values
// that do not fit: all are listed); then no object has changed, in no process of a group.
// Errors of both in a group: also DeadlineExceeded (a process did not come; names it), Unavailable
// (one was lost), FailedPrecondition (objects of two groups).
// Thread safety: none; not for use inside a step.
class COHORT_API Checkpoint {
 public:
  // Errors: InvalidArgument (two objects of one name, an empty name, the name "save_counter").
  Checkpoint(std::initializer_list<NamedObject> objects)
      : Checkpoint(std::vector<NamedObject>(objects)) {}
  explicit Checkpoint(std::vector<NamedObject> objects);
  // The children of `root` become those of the checkpoint, beside `objects`.
  explicit Checkpoint(TrackableHandle root, std::vector<NamedObject> objects = {});

  // Saves as `file_prefix`-N, where N is one more than at the last save, and makes it the latest
  // of its directory. Returns that path.
  std::string save(const std::string& file_prefix, const CheckpointOptions& options = {}) const;
  // Saves as `path` itself, and counts nothing. Returns it.
  std::string write(const std::string& path, const CheckpointOptions& options = {}) const;

  // nullopt (there is no latest checkpoint) restores nothing.
  LoadStatus restore(const std::optional<std::string>& path,
                     const RestoreOptions& options = {}) const;
  // The same, but the save_counter stays as it is: the counterpart of `write`.
  LoadStatus read(const std::string& path, const RestoreOptions& options = {}) const;

  // How often `save` was called, restored with everything else.
  int64_t save_counter() const;
  // Until no save is under way. Errors: those of that save, DeadlineExceeded.
  void wait(std::chrono::milliseconds timeout = std::chrono::minutes(30)) const;

  internal::CheckpointImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<internal::CheckpointImpl> impl_;
};

struct LatestOptions {
  // Where the directory's state file is damaged, or what it names is gone, take the checkpoint with
  // the highest number, and log a warning.
  bool fall_back = false;
};

// The path of the latest checkpoint in a directory, by its file `checkpoint`; nullopt if there is
// none, or if it is gone. Errors: DataLoss (the file is damaged).
COHORT_API std::optional<std::string> latest_checkpoint(const std::string& directory,
                                                        const LatestOptions& options = {});

}  // namespace train

namespace internal {
// For tests: where a checkpoint's files are. Before the first save or restore.
void use_file_system(const train::Checkpoint& checkpoint, FileSystem& files);
}  // namespace internal
}  // namespace cohort
