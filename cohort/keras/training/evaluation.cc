#include "cohort/keras/training/evaluation.h"

#include <algorithm>

#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/training/agree_on_call.h"
#include "cohort/keras/training/fit_state.h"
#include "cohort/keras/training/interrupt_requests.h"
#include "cohort/keras/training/kept_metrics.h"
#include "cohort/keras/training/loop_form.h"
#include "cohort/keras/training/progbar_logger.h"

namespace cohort::internal {

using keras::Logs;

Evaluation::Evaluation(const keras::ModelHandle& model, const keras::Data& data,
                       const Options& options)
    : model_(model_of(model)),
      data_(data),
      options_(options),
      core_(strategy_of(*model_)),
      loop_(core_, Training::test_step(model_)) {
  loop_.set_input(make_step_input(loop_.runner(), data_.source(),
                                  {.call = "evaluate", .batch_size = options.batch_size}));
  make_variables(model_, *loop_.input());
  steps_ = steps_to_run(options.steps, options.steps_option, *loop_.input());
}

std::optional<Logs> Evaluation::run(keras::callbacks::CallbackList& callbacks) {
  Training& training = Training::of(*model_);
  const int64_t at_once =
      training.is_compiled() ? training.compiled(*model_).steps_per_execution() : 1;
  StepLogs source(*model_, loop_);
  Logs logs(source);
  training.reset_metrics(*model_);
  callbacks.on_test_begin();
  done_ = 0;
  bool interrupted = false;
  while (!interrupted && loop_.has_next(at_once, steps_ - done_)) {
    callbacks.on_test_batch_begin(done_);
    const bool is_first = done_ == 0;
    done_ += loop_.run(std::min(at_once, steps_ - done_));
    // Refuses names of metrics that steps have made, before the rest is lost.
    if (is_first) training.metrics(*model_);
    logs.forget();
    callbacks.on_test_batch_end(done_ - 1, logs);
    interrupted = options_.interrupted && options_.interrupted();
  }
  loop_.join();
  if (interrupted) {
    loop_.input()->restart();
    return std::nullopt;
  }
  if (done_ == 0) throw InvalidArgumentError("evaluate: the data has no batches");
  if (steps_ != kAllSteps && done_ < steps_) {
    log_warning("evaluate: the data has ended after ", done_, " of ", steps_, " steps");
  }
  std::vector<Logs::Entry> entries;
  source.read(entries);
  loop_.input()->restart();
  Logs result;
  for (const auto& [name, value] : entries) result.set(name, value);
  callbacks.on_test_end(result);
  return result;
}

namespace {

keras::Data weighted(const keras::Data& data, const Structure& sample_weight) {
  if (sample_weight.num_leaves() == 0) return data;
  const DataSource::Rows* rows = data.source().rows();
  if (rows != nullptr) return {rows->x, rows->y, sample_weight};
  throw InvalidArgumentError(
      "evaluate: sample_weight stands beside a dataset; make it the third member of the dataset's "
      "elements");
}

}  // namespace

Logs run_evaluation(const keras::ModelHandle& handle, const keras::Data& data,
                    const keras::EvaluateOptions& options) {
  const auto model = model_of(handle);
  Training& training = Training::of(*model);
  training.compiled(*model);
  const TrainingTurn turn(training.turns, model->name(), "evaluate");
  const auto core = strategy_of(*model);
  const StrategyScope scope(core);
  agree_on_call(*core, options);
  std::optional<InterruptRequests> interrupts;  // of the task that runs the loop
  Evaluation evaluation(handle, weighted(data, options.sample_weight),
                        {.batch_size = options.batch_size,
                         .steps = options.steps,
                         .interrupted = [&interrupts] { return interrupts->any(); }});
  const int verbose = resolve_verbose(options.verbose, *core);
  keras::callbacks::CallbackList callbacks(options.callbacks);
  if (verbose > 0) callbacks.append(std::make_shared<keras::callbacks::ProgbarLogger>());
  callbacks.set_model(handle);
  callbacks.set_params({.steps = evaluation.expected(), .verbose = verbose});
  return logs_of(evaluation.runner().run_loop([&] {
    if (training.fit != nullptr) training.fit->settle();  // its metrics stand still
    interrupts.emplace(core);
    const std::optional<Logs> logs =
        keeping_outer_metrics(training, *model, [&] { return evaluation.run(callbacks); });
    if (logs && !interrupts->any_now()) return form_of(*logs);
    throw InterruptedError(
        str("interrupted: evaluation ended after step ", evaluation.steps_done()));
  }));
}

}  // namespace cohort::internal
