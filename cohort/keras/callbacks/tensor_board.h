// Writes what training does for TensorBoard.
//
//   keras::callbacks::TensorBoard board({.log_dir = "logs/run1", .histogram_freq = 1});
//   // tensorboard --logdir logs
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/train/summary/summary_writer.h"

namespace cohort::keras::callbacks {

// Numbers of each epoch only, or also of every so-many-th step of training.
class UpdateFreq {
 public:
  // "epoch" or "batch". Errors: InvalidArgument (another word).
  COHORT_API UpdateFreq(const char* word);
  UpdateFreq(int steps) : steps_(steps) {}

  int64_t steps() const { return steps_; }  // 0: epochs only

 private:
  int64_t steps_ = 0;
};

struct TensorBoardOptions {
  std::string log_dir = "logs";
  int64_t histogram_freq = 0;  // epochs between histograms of the weights; 0: none
  bool write_graph = true;     // the model's summary, as text
  bool write_steps_per_second = false;
  UpdateFreq update_freq = "epoch";
};

// Training goes to log_dir/train, validation to log_dir/validation: epoch_loss, epoch_accuracy, ...
// by epoch, batch_loss, ... by step, weights as histograms. One task writes; with update_freq and
// several tasks all of them read the metrics together.
// Thread safety: as Callback.
class COHORT_API TensorBoard : public Callback {
 public:
  explicit TensorBoard(TensorBoardOptions options = {});

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_train_interrupted() override;

 private:
  using Clock = std::chrono::steady_clock;

  int64_t step() const;
  void write_histograms(int64_t epoch);

  TensorBoardOptions options_;
  std::optional<summary::SummaryWriter> train_;
  std::optional<summary::SummaryWriter> validation_;  // made when there is something to write
  Clock::time_point epoch_start_;
  int64_t epoch_first_step_ = 0;
  int64_t next_update_ = 0;
};

}  // namespace cohort::keras::callbacks
