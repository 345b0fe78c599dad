// Saves the model as it is trained: the whole model, or its weights alone.
//
//   keras::callbacks::ModelCheckpoint each("run/{epoch:02d}-{val_loss:.2f}");
//   // keras::models::load_model("run/05-0.31")
//   keras::callbacks::ModelCheckpoint best({.filepath = "run/best", .monitor = "val_accuracy",
//                                           .save_best_only = true, .save_weights_only = true});
//   // model.load_weights("run/best")
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/callbacks/save_freq.h"
#include "cohort/keras/model/callback.h"
#include "cohort/train/checkpoint.h"

namespace cohort::internal {
class ModelSaver;
}

namespace cohort::keras::callbacks {

struct ModelCheckpointOptions {
  // The path of ModelHandle::save, or of save_weights. {epoch}, {batch} and the names of the logs
  // in it stand for numbers, with a format as in Python: {epoch:02d}, {val_loss:.2f}. Without any,
  // each save replaces the last; what a kill leaves at any moment is one of the two.
  std::string filepath;
  std::string monitor = "val_loss";
  // Only where `monitor` is better than that of the last model that was saved.
  bool save_best_only = false;
  // Saves as ModelHandle::save_weights does; else as ModelHandle::save, so that models::load_model
  // makes the model again.
  bool save_weights_only = false;
  // "min", "max", or "auto": "max" where the name of `monitor` ends in "acc", "accuracy" or "auc",
  // a number after it apart ("auc_1").
  std::string mode = "auto";
  SaveFreq save_freq = "epoch";
  // `monitor` must be better than this at first.
  std::optional<double> initial_value_threshold = std::nullopt;
  // Training goes on while the file is written; it is there when fit returns.
  bool asynchronous = true;
};

// Training goes on when the file system is full (ResourceExhausted): the error is logged, and the
// next save is tried as usual. COLLECTIVE over tasks, of which one writes; other processes cannot
// save into the same directory as long as fit runs.
// Errors of fit, before the first step: InvalidArgument, if the logs will not have what a file name
// is made of (val_loss without validation; names of training are known after that step);
// Unimplemented, if the model cannot be saved whole (a TorchModel, a layer without get_config);
// NotFound, PermissionDenied, if nothing can be written at the path (a part of it is a file, it is
// another user's, it is read-only); FailedPrecondition (another process saves there).
// Thread safety: as Callback.
class COHORT_API ModelCheckpoint : public Callback {
 public:
  // Errors: InvalidArgument (no filepath, or one with a brace without its other, a format that is
  // none, {batch} where each epoch is saved, or a number of validation where steps are; a mode).
  explicit ModelCheckpoint(ModelCheckpointOptions options);
  // Takes the path first, as in Python, in place of options.filepath.
  template <std::convertible_to<std::string> Path>  // so that {.filepath = ..} is not taken for one
  explicit ModelCheckpoint(const Path& filepath, ModelCheckpointOptions options = {})
      : ModelCheckpoint(with_path(std::move(options), filepath)) {}

  // The best number of a model that was saved.
  double best() const { return best_; }

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override { epoch_ = epoch; }
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_train_interrupted() override;
  void on_train_error() override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<ModelCheckpoint>(*this);
  }

  static ModelCheckpointOptions with_path(ModelCheckpointOptions options, std::string filepath) {
    options.filepath = std::move(filepath);
    return options;
  }
  std::vector<internal::LogRead> log_reads() const override;
  void check_pattern() const;
  void check_path() const;
  void save(std::optional<int64_t> batch, const Logs& logs);
  void write(const std::string& path);
  // Waits for the save that is under way.
  void finish();
  void let_go();

  ModelCheckpointOptions options_;
  internal::Monitor monitor_;
  double best_;
  std::optional<double> best_when_saved_;  // of the save that is under way
  int64_t epoch_ = 0;
  std::shared_ptr<internal::ModelSaver> whole_;
  std::optional<train::Checkpoint> weights_;  // one of the two, while fit runs
};

}  // namespace cohort::keras::callbacks
