#include "cohort/keras/callbacks/backup_and_restore.h"

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/writable_directory.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/keras/callbacks/backup_removal.h"
#include "cohort/keras/layers/layer_state.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/training.h"

namespace cohort::keras::callbacks {

using internal::Training;

BackupAndRestore::BackupAndRestore(std::string backup_dir, const BackupAndRestoreOptions& options)
    : directory_(std::move(backup_dir)), options_(options) {
  if (directory_.empty()) throw InvalidArgumentError("BackupAndRestore needs a directory");
}

void BackupAndRestore::make_manager() {
  const ModelHandle handle = model();
  Training& training = Training::of(*internal::model_of(handle));
  const auto metrics = std::make_shared<train::TrackableList>();
  for (const auto& metric : handle.metrics()) {
    const auto object = metric.trackable();
    metrics->add(*object, object);
  }
  manager_.emplace(
      train::Checkpoint({{"model", handle},
                         {"optimizer", handle.optimizer()},
                         {"metrics", std::static_pointer_cast<train::Trackable>(metrics)},
                         {"random", distribute::Strategy(internal::strategy_of(*handle.get()))},
                         {"progress", training.fit->progress},
                         {"input", training.fit->input}}),
      directory_,
      train::CheckpointManagerOptions{.max_to_keep = 1, .checkpoint_name = internal::kBackupName});
}

void BackupAndRestore::on_train_begin() {
  internal::FitState* fit = Training::of(*internal::model_of(model())).fit;
  if (fit == nullptr) {
    throw FailedPreconditionError(
        "BackupAndRestore works in fit only; in a loop of your own use "
        "train::CheckpointManager");
  }
  if (is_chief()) internal::check_directory_is_writable(directory_);
  // The seed of the shuffling first, since it is part of the pipeline whose position follows.
  const uint64_t seed = fit->progress->shuffle_seed;
  const train::LoadStatus found =
      train::Checkpoint({{"progress", fit->progress}})
          .restore(train::latest_checkpoint(directory_, {.fall_back = true}), {.fall_back = true});
  found.expect_partial();
  if (fit->progress->shuffle_seed != seed) fit->make_input();
  make_manager();
  if (found.path().empty()) return;
  const auto path = manager_->restore_or_initialize({.fall_back = true});
  if (!path) return;
  if (is_chief()) {
    internal::log_info("BackupAndRestore: going on at epoch ", fit->progress->epoch + 1, ", step ",
                       fit->progress->step + 1, ", from ", *path);
  }
}

void BackupAndRestore::save() {
  Training::of(*internal::model_of(model())).fit->settle();
  try {
    manager_->save();
  } catch (const ResourceExhaustedError& error) {
    internal::log(logging::Level::kError,
                  "BackupAndRestore: a save has failed, training goes on: ", error.what());
  }
}

void BackupAndRestore::on_epoch_end(int64_t, Logs&) {
  if (options_.save_freq.each_epoch()) save();
}

void BackupAndRestore::on_train_batch_end(int64_t batch, const Logs&) {
  if (options_.save_freq.is_due(batch)) save();
}

void BackupAndRestore::on_train_interrupted() { save(); }

void BackupAndRestore::on_train_error() { manager_.reset(); }

void BackupAndRestore::on_train_end(const Logs&) {
  manager_.reset();
  // A training that was over before has not made its layers: they are restored when they are made.
  if (!model().built()) return;
  if (options_.delete_checkpoint && is_chief()) {
    internal::remove_backup(internal::posix_file_system(), directory_);
  }
}

}  // namespace cohort::keras::callbacks
