// fit, epoch by epoch.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/keras/model/callback_list.h"
#include "cohort/keras/training/evaluation.h"
#include "cohort/keras/training/fit_state.h"
#include "cohort/keras/training/interrupt_requests.h"
#include "cohort/keras/training/step_loop.h"

namespace cohort::internal {

// One call of fit. Thread safety: none.
class FitLoop {
 public:
  // Errors: as fit, of wrong options.
  FitLoop(const keras::ModelHandle& model, const keras::Data& data,
          const keras::FitOptions& options);
  ~FitLoop();
  FitLoop(const FitLoop&) = delete;
  FitLoop& operator=(const FitLoop&) = delete;

  keras::History run();

 private:
  // Why an epoch has ended.
  enum class EpochEnd { kComplete, kNoData, kStopped };

  void check_options() const;
  // What is trained on, and what is kept for validation.
  void divide(const keras::Data& data);
  InputPlan input_plan() const;
  // The number of passes over tensors: one for each epoch where epochs are no whole passes.
  int64_t passes() const;
  void make_input();
  keras::History train();
  keras::History train_epochs();
  // See FitState.
  void settle();
  // Whether there is data for another epoch. Warns, or throws, if not.
  bool has_data();
  EpochEnd train_epoch();
  // Says which numbers callbacks look for and will not find, as far as that is known.
  void check_log_reads(bool before_first_step);
  keras::Logs finish_epoch();
  // Ends an epoch whose validation Ctrl-C has ended. Callbacks may miss its numbers: what they
  // throw is logged, and fit ends as after Ctrl-C in a step.
  void end_unvalidated_epoch(int64_t epoch, keras::Logs& logs);
  [[noreturn]] void end_interrupted();

  const keras::ModelHandle handle_;
  const std::shared_ptr<keras::Model> model_;
  Training& training_;
  const TrainingTurn turn_;
  const keras::FitOptions& options_;
  const std::shared_ptr<StrategyCore> core_;
  const StrategyScope scope_;

  std::shared_ptr<const DataSource> data_;
  std::optional<keras::Data> validation_data_;
  StepLoop loop_;
  FitState state_;
  FitState* outer_ = nullptr;  // of the fit in whose callback this one was called
  bool outer_stop_ = false;    // whether that one is to end
  int64_t steps_ = kAllSteps;  // of an epoch
  bool begins_anew_ = true;    // each epoch, at the beginning of the data
  int64_t ahead_ = 0;          // steps that progress counts, and of which callbacks do not know yet
  bool trained_ = false;
  bool checked_reads_ = false;                   // those of callbacks, after the first step
  bool validation_ended_early_ = false;          // by Ctrl-C
  std::optional<InterruptRequests> interrupts_;  // while it trains
  std::optional<Evaluation> validation_;
  keras::callbacks::CallbackList callbacks_;
};

}  // namespace cohort::internal
