#include "cohort/keras/training/fit_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/optimizers/optimizer_state.h"
#include "cohort/keras/training/agree_on_call.h"
#include "cohort/keras/training/kept_metrics.h"
#include "cohort/keras/training/log_check.h"
#include "cohort/keras/training/loop_form.h"
#include "cohort/keras/training/progbar_logger.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

using keras::FitOptions;
using keras::Logs;

namespace {

// The same in all tasks.
uint64_t agreed_seed(StrategyCore& core) {
  const auto seed = static_cast<int64_t>(next_seed());
  if (!core.group().spans_tasks()) return static_cast<uint64_t>(seed);
  return static_cast<uint64_t>(collective::all_tasks_values(core.group(), seed, "seed of fit")[0]);
}

DataSource::Rows with_weight(DataSource::Rows rows, const Structure& sample_weight) {
  if (sample_weight.num_leaves() > 0) rows.sample_weight = sample_weight;
  return rows;
}

// Its data are others than those of the steps: errors say so.
template <class Call>
auto of_validation(const Call& call) {
  try {
    return call();
  } catch (...) {
    std::rethrow_exception(error_of_step(caught_error(), "validation"));
  }
}

keras::Data data_of(const DataSource::Rows& rows) { return {rows.x, rows.y, rows.sample_weight}; }

}  // namespace

FitLoop::FitLoop(const keras::ModelHandle& model, const keras::Data& data,
                 const FitOptions& options)
    : handle_(model),
      model_(model_of(model)),
      training_(Training::of(*model_)),
      turn_(training_.turns, model_->name(), "fit"),
      options_(options),
      core_(strategy_of(*model_)),
      scope_(core_),
      loop_(core_, Training::train_step(model_, options.class_weight)),
      callbacks_(options.callbacks) {
  training_.compiled(*model_);
  check_options();
  agree_on_call(*core_, options);
  divide(data);
  state_.progress = std::make_shared<FitProgress>();
  state_.progress->epoch = options.initial_epoch;
  state_.progress->shuffle_seed = agreed_seed(*core_);
  state_.progress->group = core_->save_group();
  state_.make_input = [this] { make_input(); };
  state_.settle = [this] { settle(); };
  make_input();
  make_variables(model_, *state_.input);
  steps_ = steps_to_run(options.steps_per_epoch, "steps_per_epoch", *state_.input);
  begins_anew_ = steps_ == kAllSteps || steps_ == state_.input->cardinality();
  if (validation_data_) {
    std::optional<int64_t> batch_size = options.validation_batch_size;
    if (!batch_size && validation_data_->source().rows() != nullptr)
      batch_size = options.batch_size;
    of_validation([&] {
      validation_.emplace(
          handle_, *validation_data_,
          Evaluation::Options{.batch_size = batch_size,
                              .steps = options.validation_steps,
                              .steps_option = "validation_steps",
                              .interrupted = [this] { return interrupts_->any(); }});
    });
  }
  const int verbose = resolve_verbose(options.verbose, *core_);
  if (verbose > 0) callbacks_.append(std::make_shared<keras::callbacks::ProgbarLogger>());
  callbacks_.set_model(handle_);
  callbacks_.set_params({.epochs = options.epochs,
                         .steps = expected_steps(steps_, *state_.input),
                         .verbose = verbose,
                         .validates = validation_data_.has_value()});
  outer_ = std::exchange(training_.fit, &state_);
  outer_stop_ = std::exchange(training_.stop, false);
}

FitLoop::~FitLoop() {
  training_.fit = outer_;
  if (outer_ != nullptr) training_.stop = outer_stop_;
}

void FitLoop::check_options() const {
  const auto refuse = [](const auto&... parts) {
    throw InvalidArgumentError(str("fit: ", parts...));
  };
  if (options_.epochs < 0) refuse("epochs is ", options_.epochs, ", below 0");
  if (options_.initial_epoch < 0) refuse("initial_epoch is ", options_.initial_epoch, ", below 0");
  if (!(options_.validation_split >= 0 && options_.validation_split < 1)) {
    refuse("validation_split is ", options_.validation_split, "; it must be in [0, 1)");
  }
  if (!options_.validation_freq.is_list() && options_.validation_freq.every() < 1) {
    refuse("validation_freq is ", options_.validation_freq.every(), "; it must be 1 or more");
  }
}

void FitLoop::divide(const keras::Data& data) {
  validation_data_ = options_.validation_data;
  const DataSource::Rows* rows = data.source().rows();
  if (rows == nullptr) {
    if (options_.sample_weight.num_leaves() > 0) {
      throw InvalidArgumentError(
          "fit: sample_weight stands beside a dataset; make it the third member of the dataset's "
          "elements: (x, y, sample_weight)");
    }
    if (options_.validation_split > 0) {
      throw InvalidArgumentError(
          "fit: validation_split divides tensors, not a dataset; pass .validation_data, made with "
          "take() and skip()");
    }
    data_ = std::shared_ptr<const DataSource>(std::shared_ptr<const void>(), &data.source());
    return;
  }
  DataSource::Rows all = with_weight(*rows, options_.sample_weight);
  const int64_t count = count_rows(all);
  if (options_.validation_split > 0 && !validation_data_) {
    const auto split = static_cast<int64_t>(
        std::floor(static_cast<double>(count) * (1 - options_.validation_split)));
    if (split == 0 || split == count) {
      throw InvalidArgumentError(str("fit: validation_split ", options_.validation_split, " of ",
                                     count, " examples leaves ",
                                     split == 0 ? "training" : "validation", " without any"));
    }
    validation_data_ = data_of(slice_rows(all, split, count));
    all = slice_rows(all, 0, split);
  }
  data_ = std::make_shared<const DataSource>(DataSource{std::move(all)});
}

InputPlan FitLoop::input_plan() const {
  InputPlan plan{.call = "fit", .batch_size = options_.batch_size};
  if (options_.shuffle) plan.shuffle_seed = state_.progress->shuffle_seed;
  return plan;
}

int64_t FitLoop::passes() const {
  const DataSource::Rows* rows = data_->rows();
  const int64_t steps = options_.steps_per_epoch.value_or(-1);
  if (rows == nullptr || steps < 1 || steps == batches_of(*rows, input_plan())) return 1;
  return std::max<int64_t>(options_.epochs - options_.initial_epoch, 1);
}

void FitLoop::make_input() {
  InputPlan plan = input_plan();
  plan.passes = passes();
  loop_.set_input(nullptr);
  state_.input.reset();  // before the next one, which takes its place
  state_.input = make_step_input(loop_.runner(), *data_, plan);
  loop_.set_input(state_.input);
}

keras::History FitLoop::run() {
  return history_of(loop_.runner().run_loop([this] { return form_of(train()); }));
}

keras::History FitLoop::train() {
  try {
    if (outer_ != nullptr) outer_->settle();  // its metrics stand still
    return keeping_outer_metrics(training_, *model_, [this] { return train_epochs(); });
  } catch (...) {
    callbacks_.on_train_error();
    throw;
  }
}

keras::History FitLoop::train_epochs() {
  interrupts_.emplace(core_);
  keras::History history;
  FitProgress& progress = *state_.progress;
  check_log_reads(/*before_first_step=*/true);
  callbacks_.on_train_begin();
  Logs logs;
  EpochEnd end = EpochEnd::kComplete;
  while (progress.epoch < options_.epochs && end != EpochEnd::kNoData && !training_.stop) {
    if (progress.step == 0 && !has_data()) break;
    const int64_t epoch = progress.epoch;
    if (progress.step == 0) training_.reset_metrics(*model_);
    callbacks_.on_epoch_begin(epoch);
    end = train_epoch();
    logs = finish_epoch();
    if (validation_ended_early_) {
      end_unvalidated_epoch(epoch, logs);
    } else {
      callbacks_.on_epoch_end(epoch, logs);
    }
    history.add(epoch, logs);
    if (interrupts_->any_now()) end_interrupted();
  }
  OptimizerState::of(training_.compiled(*model_).optimizer())
      .finish_fit(model_->trainable_variables());
  callbacks_.on_train_end(logs);
  return history;
}

bool FitLoop::has_data() {
  if (state_.input->has_next()) return true;
  if (!trained_ && state_.progress->epoch == options_.initial_epoch) {
    throw InvalidArgumentError("fit: the data has no batches");
  }
  log_warning("fit: the data has ended before epoch ", state_.progress->epoch + 1, " of ",
              options_.epochs, "; training stops here. A dataset that .repeat()s does not end");
  return false;
}

FitLoop::EpochEnd FitLoop::train_epoch() {
  StepLogs source(*model_, loop_);
  Logs logs(source);
  FitProgress& progress = *state_.progress;
  const int64_t at_once = training_.compiled(*model_).steps_per_execution();
  EpochEnd end = EpochEnd::kComplete;
  bool is_first = true;
  int64_t reported = progress.step;  // steps that callbacks know of
  // After a stop, those that were under way.
  while (loop_.has_next(at_once, end == EpochEnd::kStopped ? 0 : steps_ - reported)) {
    callbacks_.on_train_batch_begin(reported);
    reported += loop_.run(std::min(at_once, steps_ - reported));
    ahead_ = loop_.ahead();
    progress.step = reported + ahead_;
    // Refuses names of metrics that steps have made, before the epoch is lost.
    if (std::exchange(is_first, false)) {
      training_.metrics(*model_);
      if (!std::exchange(checked_reads_, true)) check_log_reads(/*before_first_step=*/false);
    }
    logs.forget();
    callbacks_.on_train_batch_end(reported - 1, logs);
    if (interrupts_->any()) end_interrupted();
    if (training_.stop) end = EpochEnd::kStopped;
  }
  settle();
  if (progress.step == 0 && !trained_) throw InvalidArgumentError("fit: the data has no batches");
  if (end == EpochEnd::kComplete && steps_ != kAllSteps && progress.step < steps_) {
    log_warning("fit: the data has ended after ", progress.step, " of ", steps_, " steps of epoch ",
                progress.epoch + 1,
                "; training stops here. Give fewer steps_per_epoch, or a dataset that .repeat()s");
    end = EpochEnd::kNoData;
  }
  return end;
}

void FitLoop::check_log_reads(bool before_first_step) {
  const auto find_missing = [&] {
    KnownLogs known{
        .validates = validation_.has_value(),
        .validates_first_epoch = options_.validation_freq.is_due(options_.initial_epoch)};
    if (!before_first_step) {
      known.metrics.emplace();
      for (const NamedMetric& one : training_.metrics(*model_)) {
        known.metrics->push_back(one.log_name);
      }
    }
    return missing_logs(callbacks_, known);
  };
  std::vector<MissingLog> missing = find_missing();
  if (missing.empty()) return;
  if (!before_first_step) {  // the step that makes metrics may be under way
    settle();
    missing = find_missing();
  }
  report_missing_logs(missing);
}

void FitLoop::settle() {
  loop_.join();
  FitProgress& progress = *state_.progress;
  progress.step += loop_.ahead() - ahead_;
  ahead_ = loop_.ahead();
  trained_ = trained_ || progress.step > 0;
}

Logs FitLoop::finish_epoch() {
  StepLogs source(*model_, loop_);
  std::vector<Logs::Entry> entries;
  source.read(entries);
  Logs logs;
  for (const auto& [name, value] : entries) logs.set(name, value);
  FitProgress& progress = *state_.progress;
  const int64_t epoch = progress.epoch;
  // The next step is the next epoch's first from here on: what callbacks save goes on there.
  if (begins_anew_) state_.input->restart();
  progress.epoch += 1;
  progress.step = 0;
  if (validation_ && options_.validation_freq.is_due(epoch)) {
    const std::optional<Logs> found = of_validation([&] { return validation_->run(callbacks_); });
    validation_ended_early_ = !found;
    if (found) {
      for (const auto& [name, value] : *found) logs.set("val_" + name, value);
    }
  }
  return logs;
}

void FitLoop::end_unvalidated_epoch(int64_t epoch, Logs& logs) {
  try {
    callbacks_.on_epoch_end(epoch, logs);
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    log_warning("fit: the validation of epoch ", epoch + 1, " was interrupted, and ", error.what());
  }
}

void FitLoop::end_interrupted() {
  settle();
  callbacks_.on_train_interrupted();
  const FitProgress& progress = *state_.progress;
  throw InterruptedError(str("interrupted: training ended in epoch ", progress.epoch + 1,
                             " before step ", progress.step + 1));
}

}  // namespace cohort::internal
