// The calls of ModelHandle that train.
#include "cohort/core/interrupt.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/keras/callbacks/progbar_logger.h"
#include "cohort/keras/layers/layer_state.h"
#include "cohort/keras/model.h"
#include "cohort/keras/training/evaluation.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/loop_form.h"
#include "cohort/keras/training/prediction.h"
#include "cohort/keras/training/training.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {

using internal::model_of;
using internal::str;
using internal::Training;

namespace {

// x with labels beside it.
Data joined_data(const Data& x, const Structure& y, const char* call) {
  const internal::DataSource::Rows* rows = x.source().rows();
  if (rows == nullptr || rows->y.num_leaves() > 0) {
    throw InvalidArgumentError(
        str(call,
            ": y stands beside data that has labels of its own; the elements of a dataset are "
            "(x, y)"));
  }
  return {rows->x, y, rows->sample_weight};
}

Data weighted(const Data& data, const Structure& sample_weight, const char* call) {
  if (sample_weight.num_leaves() == 0) return data;
  const internal::DataSource::Rows* rows = data.source().rows();
  if (rows == nullptr) {
    throw InvalidArgumentError(str(call,
                                   ": sample_weight stands beside a dataset; make it the third "
                                   "member of the dataset's elements"));
  }
  return {rows->x, rows->y, sample_weight};
}

// The whole of x and y as one batch.
struct OneBatch {
  OneBatch(const std::shared_ptr<Model>& model, std::shared_ptr<const internal::StepFunction> step,
           const Data& data)
      : core(internal::strategy_of(*model)), scope(core), loop(core, std::move(step)) {
    const auto& rows = *data.source().rows();
    const int64_t count = internal::count_rows(rows);
    loop.set_input(internal::make_step_input(
        loop.runner(), data.source(),
        {.call = "a step on one batch", .batch_size = std::max<int64_t>(count, 1)}));
    internal::make_variables(model, *loop.input());
  }
  const std::shared_ptr<internal::StrategyCore> core;
  const internal::StrategyScope scope;
  internal::StepLoop loop;
};

Logs run_on_batch(const std::shared_ptr<Model>& model,
                  std::shared_ptr<const internal::StepFunction> step, const Data& data,
                  bool reset) {
  OneBatch batch(model, std::move(step), data);
  return internal::logs_of(batch.loop.runner().run_loop([&] {
    if (reset) internal::reset_all(Training::of(*model).metrics(*model));
    batch.loop.run(1);
    batch.loop.join();
    std::vector<Logs::Entry> entries;
    internal::StepLogs(*model, batch.loop).read(entries);
    Logs logs;
    for (const auto& [name, value] : entries) logs.set(name, value);
    return internal::form_of(logs);
  }));
}

}  // namespace

void ModelHandle::compile(const CompileOptions& options) const {
  Model& own = model();
  const internal::StrategyScope scope(internal::strategy_of(own));
  Training::of(own).compile(options, own);
}

History ModelHandle::fit(const Data& data, const FitOptions& options) const {
  return internal::FitLoop(*this, data, options).run();
}

History ModelHandle::fit(const Data& x, const Structure& y, const FitOptions& options) const {
  return fit(joined_data(x, y, "fit"), options);
}

Logs ModelHandle::evaluate(const Data& data, const EvaluateOptions& options) const {
  Training::of(model()).compiled(model());
  const auto core = internal::strategy_of(model());
  const internal::StrategyScope scope(core);
  const internal::InterruptScope interrupts;
  internal::Evaluation evaluation(
      *this, weighted(data, options.sample_weight, "evaluate"),
      {.batch_size = options.batch_size, .steps = options.steps, .can_interrupt = true});
  const int verbose = internal::resolve_verbose(options.verbose, *core);
  callbacks::CallbackList list(options.callbacks);
  if (verbose > 0) list.append(std::make_shared<callbacks::ProgbarLogger>());
  list.set_model(*this);
  list.set_params({.steps = evaluation.expected(), .verbose = verbose});
  return internal::logs_of(
      evaluation.runner().run_loop([&] { return internal::form_of(evaluation.run(list)); }));
}

Logs ModelHandle::evaluate(const Data& x, const Structure& y,
                           const EvaluateOptions& options) const {
  return evaluate(joined_data(x, y, "evaluate"), options);
}

Structure ModelHandle::predict(const Data& data, const PredictOptions& options) const {
  return internal::run_prediction(*this, data, options);
}

Logs ModelHandle::train_on_batch(const Structure& x, const Structure& y,
                                 const OnBatchOptions& options) const {
  const auto own = model_of(*this);
  return run_on_batch(own, Training::train_step(own, options.class_weight),
                      Data(x, y, options.sample_weight), options.reset_metrics);
}

Logs ModelHandle::test_on_batch(const Structure& x, const Structure& y,
                                const OnBatchOptions& options) const {
  const auto own = model_of(*this);
  return run_on_batch(own, Training::test_step(own), Data(x, y, options.sample_weight),
                      options.reset_metrics);
}

Structure ModelHandle::predict_on_batch(const Structure& x) const {
  return predict(
      x, {.batch_size = std::max<int64_t>(internal::count_rows({x, {}, {}}), 1), .verbose = 0});
}

void ModelHandle::reset_metrics() const {
  for (const metrics::Metric& metric : metrics()) metric.reset_state();
}

bool ModelHandle::stop_training() const { return Training::of(model()).stop; }
void ModelHandle::set_stop_training(bool stop) const { Training::of(model()).stop = stop; }

void ModelHandle::save_weights(const std::string& path) const {
  internal::write_for_all(model(), [&] { train::Checkpoint(trackable()).write(path); });
}

void ModelHandle::load_weights(const std::string& path) const {
  const train::LoadStatus status = train::Checkpoint(trackable()).read(path);
  status.expect_partial();
  if (built()) status.assert_existing_objects_matched();
}

}  // namespace cohort::keras
