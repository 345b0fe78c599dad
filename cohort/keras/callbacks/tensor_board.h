// Writes what training does for TensorBoard.
//
//   keras::callbacks::TensorBoard board({.log_dir = "logs/run1", .histogram_freq = 1});
//   // tensorboard --logdir logs
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/keras/model/callback.h"
#include "cohort/train/summary/summary_writer.h"

namespace cohort::keras::callbacks {

// Numbers of each epoch only, or also of every so-many-th step of training: of 10, 20, .. with 10.
class UpdateFreq {
 public:
  // "epoch" or "batch". Errors: InvalidArgument (another word).
  COHORT_API UpdateFreq(const char* word);
  // Errors: InvalidArgument (below 1).
  COHORT_API UpdateFreq(int steps);

  int64_t steps() const { return steps_; }  // 0: epochs only

 private:
  int64_t steps_ = 0;
};

// Steps of a fit, counted from 1: 5, or {5, 8}; none.
class ProfileBatch {
 public:
  ProfileBatch() = default;
  ProfileBatch(int step) : ProfileBatch(step, step) {}
  // Errors: InvalidArgument (below 1, or the last before the first).
  COHORT_API ProfileBatch(int64_t first, int64_t last);

  int64_t first() const { return first_; }  // 0: none
  int64_t last() const { return last_; }

 private:
  int64_t first_ = 0;
  int64_t last_ = 0;
};

struct TensorBoardOptions {
  std::string log_dir = "logs";
  int64_t histogram_freq = 0;           // epochs between histograms of the weights; 0: none
  bool write_graph = true;              // the model: its summary as text, its layers as a graph
  bool write_steps_per_second = false;  // epoch_, and with update_freq also batch_steps_per_second
  UpdateFreq update_freq = "epoch";
  // The first and last step, of those of this fit, of which a trace is written; {}: none.
  ProfileBatch profile_batch = {};
};

// Training goes to log_dir/train, validation to log_dir/validation: epoch_loss, epoch_accuracy, ...
// by epoch, batch_loss, ... by step, weights as histograms; of each validation, and of evaluate
// with this callback, evaluation_loss_vs_iterations, ... by the optimizer's iterations. One task
// writes all that; with update_freq and several tasks all of them read the metrics together.
// Traces are written by each task that has callbacks, for chrome://tracing or Perfetto and, as
// .xplane.pb beside it, for TensorBoard's page of profiles: where all run the same program,
// log_dir/train/plugins/profile/steps-5-8/HOST.worker-1.trace.json; of a coordinator, and of a
// program that is no task of a cluster, HOST.trace.json. The chief's table of
// times is a text, too. Under a file system that is full training goes on, which is logged once;
// nothing more is recorded of it.
// Errors of fit, before the first step: those of a summary writer whose file cannot be made.
// Thread safety: as Callback.
class COHORT_API TensorBoard : public Callback {
 public:
  // Errors: InvalidArgument (no log_dir; a histogram_freq below 0).
  explicit TensorBoard(TensorBoardOptions options = {});
  template <std::convertible_to<std::string> Text>
  explicit TensorBoard(const Text& log_dir) : TensorBoard(TensorBoardOptions{.log_dir = log_dir}) {}

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_begin(int64_t batch) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_train_interrupted() override;
  void on_train_error() override;
  void on_test_end(const Logs& logs) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<TensorBoard>(*this);
  }

  using Clock = std::chrono::steady_clock;

  int64_t step() const;
  int64_t update_after(int64_t step) const;
  // Calls `write`, which writes to a file and nothing else. Once the disk is full no more is
  // written.
  void record(FunctionRef<void()> write);
  void record_training(FunctionRef<void()> write);
  void record_validation(FunctionRef<void()> write);  // and flushes
  void give_up_files();  // after an error that was said, and that they would say again
  void write_model();
  void write_histograms(int64_t epoch);
  std::string profile_directory() const;
  void finish_profile();
  void close_writers();
  const summary::SummaryWriter& validation_writer();

  TensorBoardOptions options_;
  std::optional<summary::SummaryWriter> train_;
  std::optional<summary::SummaryWriter> validation_;  // made when there is something to write
  Clock::time_point epoch_start_;
  int64_t epoch_first_step_ = 0;
  int64_t next_update_ = 0;  // the step from which on numbers are due
  Clock::time_point last_update_;
  int64_t last_update_step_ = 0;
  int64_t steps_of_fit_ = 0;
  int64_t last_batch_ = -1;  // of the epoch
  bool profiles_ = false;
  bool wrote_model_ = false;
  bool is_full_ = false;
};

}  // namespace cohort::keras::callbacks
