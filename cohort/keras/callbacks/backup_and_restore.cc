#include "cohort/keras/callbacks/backup_and_restore.h"

#include <algorithm>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/writable_directory.h"
#include "cohort/core/observe/line_limit.h"
#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/keras/callbacks/backup_removal.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/keras/training/fit_state.h"
#include "cohort/keras/training/training.h"
#include "cohort/train/checkpoint_reader.h"
#include "cohort/train/saving/checkpoint_directory.h"

namespace cohort::keras::callbacks {

using internal::Training;

namespace {

// Backups of earlier versions had no names for metrics.
bool has_metrics_by_place(const std::string& backup) {
  const auto variables = train::list_variables(backup);
  const auto has = [&](std::string_view metric) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](const auto& variable) { return variable.name.starts_with(metric); });
  };
  return has("metrics/0/") && !has("metrics/loss/");
}

}  // namespace

BackupAndRestore::BackupAndRestore(std::string backup_dir, const BackupAndRestoreOptions& options)
    : directory_(std::move(backup_dir)), options_(options) {
  if (directory_.empty()) throw InvalidArgumentError("BackupAndRestore needs a directory");
}

void BackupAndRestore::make_manager() {
  const ModelHandle handle = model();
  const auto model = internal::model_of(handle);
  Training& training = Training::of(*model);
  metrics_ = std::make_shared<internal::ReportedMetrics>();
  metrics_->set(training.metrics(*model));
  training.report_to(metrics_, *model);
  manager_.emplace(
      train::Checkpoint({{"model", handle},
                         {"optimizer", handle.optimizer()},
                         {"metrics", metrics_},
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
  if (is_chief()) {
    internal::check_directory_is_writable(directory_);
    internal::CheckpointDirectory::check_no_other_writer(internal::posix_file_system(), directory_);
  }
  if (is_chief() && Training::of(*internal::model_of(model())).used_backups.contains(directory_)) {
    internal::log_warning("BackupAndRestore: an earlier fit of this program has used ", directory_,
                          ", too: killed from now on and started again, the program would go on "
                          "from this fit's backup in that "
                          "earlier one. Give each fit a directory of its own");
  }
  // The seed of the shuffling first, since it is part of the pipeline whose position follows.
  const uint64_t seed = fit->progress->shuffle_seed;
  const train::LoadStatus found =
      train::Checkpoint({{"progress", fit->progress}})
          .restore(train::latest_checkpoint(directory_, {.fall_back = true}), {.fall_back = true});
  found.expect_partial();
  if (fit->progress->shuffle_seed != seed) fit->make_input();
  make_manager();
  if (!found.path().empty()) restore(found.path());
}

void BackupAndRestore::restore(const std::string& backup) {
  const bool by_place = has_metrics_by_place(backup);
  metrics_->set_found_by_place(by_place);
  const auto path = manager_->restore_or_initialize({.fall_back = true});
  metrics_->set_found_by_place(false);
  // Places say nothing of the metrics that the first step makes.
  if (by_place) metrics_->stop_waiting();
  if (!path || !is_chief()) return;
  const internal::FitProgress& progress = *Training::of(*internal::model_of(model())).fit->progress;
  internal::log_info("BackupAndRestore: going on at epoch ", progress.epoch + 1, ", step ",
                     progress.step + 1, ", from ", *path);
}

void BackupAndRestore::save() {
  const auto model = internal::model_of(this->model());
  Training& training = Training::of(*model);
  training.fit->settle();
  if (!manager_) make_manager();  // a fit within this one has ended with it
  metrics_->set(training.metrics(*model));
  try {
    manager_->save();
  } catch (const ResourceExhaustedError& error) {
    // After every step, perhaps, on a disk that stays full.
    static auto* const failed = new internal::LineLimit(
        "more saves of BackupAndRestore have failed",
        {.write = [](const std::string& line) { internal::log(logging::Level::kError, line); }});
    failed->say(
        internal::str("BackupAndRestore: a save has failed, training goes on: ", error.what()));
  }
}

void BackupAndRestore::on_epoch_end(int64_t, Logs&) {
  if (options_.save_freq.each_epoch()) save();
}

void BackupAndRestore::on_train_batch_end(int64_t batch, const Logs&) {
  if (options_.save_freq.is_due(batch)) save();
}

void BackupAndRestore::on_train_interrupted() { save(); }

void BackupAndRestore::on_train_error() {
  manager_.reset();
  metrics_.reset();
}

void BackupAndRestore::on_train_end(const Logs&) {
  Training::of(*internal::model_of(model())).used_backups.insert(directory_);
  if (metrics_ != nullptr) metrics_->stop_waiting();
  manager_.reset();
  metrics_.reset();
  // A training that was over before has not made its layers: they are restored when they are made.
  if (!model().built()) return;
  if (options_.delete_checkpoint && is_chief()) {
    internal::remove_backup(internal::posix_file_system(), directory_);
  }
}

}  // namespace cohort::keras::callbacks
