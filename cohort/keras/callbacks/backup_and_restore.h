// Lets a training that was killed go on where it was.
//
//   model.fit(dataset, {.epochs = 10, .callbacks = {keras::callbacks::BackupAndRestore("dir")}});
//   // killed, and started again: goes on after the last backup, with the bits of a training that
//   // was never killed
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/save_freq.h"
#include "cohort/keras/model/callback.h"
#include "cohort/train/checkpoint_manager.h"

namespace cohort::internal {
class ReportedMetrics;
}

namespace cohort::keras::callbacks {

struct BackupAndRestoreOptions {
  SaveFreq save_freq = "epoch";
  // Removes the backup when fit has come to its end.
  bool delete_checkpoint = true;
};

// A backup holds the weights, the optimizer, the metrics, the random generators of the replicas,
// the epoch, the step, and the position in the data, all of one moment. It is restored when fit
// begins; an epoch that was begun goes on in its middle. Ctrl-C saves a last one. The model, the
// options and the data must be those of before, and each fit of a program has a directory of its
// own. COLLECTIVE over tasks, of which one writes.
// Errors (of fit): those of train::Checkpoint::save and restore; ResourceExhausted at a save is
// logged, and training goes on. Before the first step: NotFound, PermissionDenied, DataLoss, where
// nothing can be written into the directory (a part of the path is a file, say).
// Thread safety: as Callback.
class COHORT_API BackupAndRestore : public Callback {
 public:
  // Errors: InvalidArgument (an empty path).
  explicit BackupAndRestore(std::string backup_dir, const BackupAndRestoreOptions& options = {});

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_train_interrupted() override;
  void on_train_error() override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<BackupAndRestore>(*this);
  }

  void make_manager();
  void restore(const std::string& backup);
  void save();

  std::string directory_;
  BackupAndRestoreOptions options_;
  // While fit runs, whose input the manager holds.
  std::shared_ptr<internal::ReportedMetrics> metrics_;
  std::optional<train::CheckpointManager> manager_;
};

}  // namespace cohort::keras::callbacks
