#include "cohort/keras/callbacks/backup_and_restore.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/writable_directory.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/keras/callbacks/backup_removal.h"
#include "cohort/keras/layers/layer_state.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/step_loop.h"
#include "cohort/keras/training/training.h"
#include "cohort/train/checkpoint_reader.h"

namespace cohort::keras::callbacks {

using internal::Training;

namespace {

// What the model reports at the moment of a save: some metrics are made by the first step.
class ReportedMetrics final : public train::Trackable {
 public:
  explicit ReportedMetrics(const ModelHandle& model) : model_(model) {}

  std::vector<train::TrackableChild> checkpoint_children() override {
    metrics_ = model_.metrics();
    std::vector<train::TrackableChild> children;
    for (const metrics::Metric& metric : metrics_) {
      children.push_back({std::to_string(children.size()), metric.trackable().get()});
    }
    return children;
  }

 private:
  const ModelHandle model_;
  std::vector<metrics::Metric> metrics_;  // keeps what was returned alive
};

// Those of ReportedMetrics in a backup.
size_t count_metrics(const std::string& backup) {
  constexpr std::string_view kMetrics = "metrics/";
  std::set<std::string> found;
  for (const train::CheckpointVariable& one : train::list_variables(backup)) {
    if (!one.name.starts_with(kMetrics)) continue;
    found.insert(one.name.substr(0, one.name.find('/', kMetrics.size())));
  }
  return found.size();
}

// An epoch that goes on in its middle needs the sums of all its metrics before its next step.
void make_missing_metrics(const ModelHandle& model, const internal::FitState& fit,
                          const std::string& backup) {
  if (count_metrics(backup) <= model.metrics().size()) return;
  try {
    internal::make_metrics(internal::model_of(model), *fit.input);
  } catch (const InvalidArgumentError& error) {
    internal::log_warning("BackupAndRestore: metrics that the first step makes begin anew: ",
                          error.what());
  }
}

}  // namespace

BackupAndRestore::BackupAndRestore(std::string backup_dir, const BackupAndRestoreOptions& options)
    : directory_(std::move(backup_dir)), options_(options) {
  if (directory_.empty()) throw InvalidArgumentError("BackupAndRestore needs a directory");
}

void BackupAndRestore::make_manager() {
  const ModelHandle handle = model();
  Training& training = Training::of(*internal::model_of(handle));
  manager_.emplace(
      train::Checkpoint({{"model", handle},
                         {"optimizer", handle.optimizer()},
                         {"metrics", std::make_shared<ReportedMetrics>(handle)},
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
  if (!found.path().empty()) make_missing_metrics(model(), *fit, found.path());
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
