// Keeps the latest checkpoints of a directory and deletes older ones.
//
//   train::CheckpointManager manager(train::Checkpoint({{"model", model}}),
//                                    directory, {.max_to_keep = 3});
//   if (manager.latest_checkpoint()) {
//     manager.checkpoint().restore(manager.latest_checkpoint()).assert_existing_objects_matched();
//   }
//   manager.save();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/train/checkpoint.h"

namespace cohort {
namespace internal {
class CheckpointManagerImpl;
}

namespace train {

// The training step: a function, or an integer variable with one element.
class StepCounter {
 public:
  template <class Function>
  requires std::is_invocable_r_v<int64_t, Function&> StepCounter(Function function)
      : read_(std::move(function)) {}
  template <class Variable>
  requires requires(const Variable& variable) {
    { variable.value() } -> std::convertible_to<Tensor>;
  }
  StepCounter(const Variable& variable)
      : read_([variable] { return variable.value().template item<int64_t>(); }) {}

  int64_t operator()() const { return read_(); }

 private:
  std::function<int64_t()> read_;
};

struct CheckpointManagerOptions {
  // How many of the latest checkpoints stay; missing: all.
  std::optional<int> max_to_keep = std::nullopt;
  // Keeps, of the checkpoints that would be deleted, one for this many hours of saving; 0: none.
  std::optional<double> keep_checkpoint_every_n_hours = std::nullopt;
  std::string checkpoint_name = "ckpt";
  // save() does nothing until this many steps have passed since the latest save. Needs
  // step_counter.
  std::optional<int64_t> checkpoint_interval = std::nullopt;
  std::optional<StepCounter> step_counter = std::nullopt;
  // Called by restore_or_initialize if there is nothing to restore.
  std::function<void()> init_fn = {};
};

struct ManagerSaveOptions {
  // N of the checkpoint's name; missing: its save_counter.
  std::optional<int64_t> checkpoint_number = std::nullopt;
  // False: saves even if checkpoint_interval has not passed.
  bool check_interval = true;
  CheckpointOptions checkpoint = {};
};

// A handle. Only one manager writes into a directory; its list starts with what it finds there,
// including the checkpoints of an earlier manager. If the checkpoint belongs to a group of
// processes, save and restore_or_initialize are collective as Checkpoint's are, and step_counter
// must be the same in all. The directory and list of the writer are used; the others learn them
// from save (after an asynchronous one, from the next call) and from restore_or_initialize.
// Thread safety: none.
class COHORT_API CheckpointManager {
 public:
  // Reads the directory's state; nothing is written before the first save. If the state file is
  // damaged, latest_checkpoint, save and restore_or_initialize (unless it may fall back) throw.
  // Errors: InvalidArgument (max_to_keep below 1; an interval below 1 or without step_counter; a
  // name that leaves the directory).
  CheckpointManager(Checkpoint checkpoint, std::string directory,
                    CheckpointManagerOptions options = {});

  // Saves, and deletes checkpoints in excess of max_to_keep. Returns the path; nullopt if it is too
  // early, or no step was made since the latest save (see checkpoint_interval).
  // Errors: as Checkpoint::save; DataLoss (the state file is damaged).
  std::optional<std::string> save(const ManagerSaveOptions& options = {}) const;
  // Returns the path that was restored; nullopt after init_fn. With options.fall_back it works even
  // if the state file is damaged or missing. Where another process writes into the directory, so
  // that a save would fail, a warning says who.
  // Errors: as Checkpoint::restore; DataLoss (the state file is damaged).
  std::optional<std::string> restore_or_initialize(const RestoreOptions& options = {}) const;

  const std::string& directory() const;
  const Checkpoint& checkpoint() const;
  std::optional<int64_t> checkpoint_interval() const;
  std::optional<std::string> latest_checkpoint() const;
  // The checkpoints that are kept for now, oldest first, without those kept for
  // keep_checkpoint_every_n_hours.
  std::vector<std::string> checkpoints() const;

  explicit CheckpointManager(std::shared_ptr<internal::CheckpointManagerImpl> impl)
      : impl_(std::move(impl)) {}

 private:
  internal::Handle<internal::CheckpointManagerImpl, "CheckpointManager"> impl_;
};

}  // namespace train

namespace internal {
// For tests: a manager whose clock gives the seconds since the epoch.
train::CheckpointManager manager_with_clock(train::Checkpoint checkpoint, std::string directory,
                                            train::CheckpointManagerOptions options,
                                            std::function<double()> clock);
}  // namespace internal
}  // namespace cohort
