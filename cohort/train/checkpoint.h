// Saves and restores objects, in the files of tf.train.Checkpoint.
//
//   train::Checkpoint checkpoint({{"optimizer", optimizer}, {"model", model}});
//   std::string path = checkpoint.save("training_checkpoints/ckpt");    // ".../ckpt-1"
//   ...
//   train::Checkpoint fresh({{"optimizer", new_optimizer}, {"model", new_model}});
//   fresh.restore(train::latest_checkpoint("training_checkpoints"));
//
// When a save returns, its data is on the disk and survives a crash or a power cut. A failure
// during a save does not damage earlier checkpoints. docs/checkpoints.md says how.
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
#include "cohort/core/handle.h"
#include "cohort/train/checkpoint_status.h"
#include "cohort/train/objects/trackable.h"
#include "cohort/train/saving/checkpoint_options.h"

namespace cohort {
namespace internal {
class CheckpointImpl;
class FileSystem;
}  // namespace internal

namespace train {

// A handle: copies name the same checkpoint. It keeps its objects alive.
// If its objects belong to a group of processes (see Trackable::save_group), save, write, restore
// and read are collective, and so is wait after an asynchronous save: every process makes the same
// calls in the same order, and all return the same or throw the same. One of them writes, and its
// path is used.
class COHORT_API Checkpoint {
 public:
  // Errors: InvalidArgument (two objects of one name, an empty name, the name "save_counter").
  Checkpoint(std::initializer_list<NamedObject> objects)
      : Checkpoint(std::vector<NamedObject>(objects)) {}
  explicit Checkpoint(std::vector<NamedObject> objects);
  // The children of `root` become children of the checkpoint, next to `objects`.
  explicit Checkpoint(TrackableHandle root, std::vector<NamedObject> objects = {});

  // Saves as `file_prefix`-N, where N is one more than at the previous save, and makes it the
  // latest checkpoint of its directory. Returns the path.
  std::string save(const std::string& file_prefix, const CheckpointOptions& options = {}) const;
  // Saves as `path` itself; the save_counter does not change. Returns the path.
  std::string write(const std::string& path, const CheckpointOptions& options = {}) const;

  // nullopt (there is no latest checkpoint) restores nothing.
  LoadStatus restore(const std::optional<std::string>& path,
                     const RestoreOptions& options = {}) const;
  // Restores, but does not change the save_counter: the counterpart of `write`.
  LoadStatus read(const std::string& path, const RestoreOptions& options = {}) const;

  // The number of calls of `save`; it is restored with the other values.
  int64_t save_counter() const;
  // Waits until no save is in progress. Errors: those of that save, DeadlineExceeded.
  void wait(std::chrono::milliseconds timeout = std::chrono::minutes(30)) const;

  internal::CheckpointImpl& impl() const { return *impl_; }

 private:
  internal::Handle<internal::CheckpointImpl, "Checkpoint"> impl_;
};

// The path of the latest checkpoint in a directory, according to its file `checkpoint`; nullopt if
// there is none, or if it is missing.
// Errors: DataLoss (the file is damaged).
COHORT_API std::optional<std::string> latest_checkpoint(const std::string& directory,
                                                        const LatestOptions& options = {});

}  // namespace train

namespace internal {
// Writes like Checkpoint::write and makes the checkpoint the latest of its directory, as Keras's
// save_weights does.
std::string write_as_latest(const train::Checkpoint& checkpoint, const std::string& path,
                            const train::CheckpointOptions& options = {});

// For tests: the file system that a checkpoint uses. Call it before the first save or restore.
void use_file_system(const train::Checkpoint& checkpoint, FileSystem& files);
}  // namespace internal
}  // namespace cohort
