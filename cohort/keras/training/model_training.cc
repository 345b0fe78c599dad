// The calls of ModelHandle that train.
#include <optional>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/training/evaluation.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/kept_metrics.h"
#include "cohort/keras/training/loop_form.h"
#include "cohort/keras/training/prediction.h"
#include "cohort/keras/training/training.h"

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

// The whole of x and y as one batch.
struct OneBatch {
  OneBatch(const std::shared_ptr<Model>& model, std::shared_ptr<const internal::StepFunction> step,
           const Data& data)
      : turn(Training::of(*model).turns, model->name(), "a step on one batch"),
        core(internal::strategy_of(*model)),
        scope(core),
        loop(core, std::move(step)) {
    const auto& rows = *data.source().rows();
    const int64_t count = internal::count_rows(rows);
    loop.set_input(internal::make_step_input(
        loop.runner(), data.source(),
        {.call = "a step on one batch", .batch_size = std::max<int64_t>(count, 1)}));
    internal::make_variables(model, *loop.input());
  }
  const internal::TrainingTurn turn;
  const std::shared_ptr<internal::StrategyCore> core;
  const internal::StrategyScope scope;
  internal::StepLoop loop;
};

Logs run_on_batch(const std::shared_ptr<Model>& model,
                  std::shared_ptr<const internal::StepFunction> step, const Data& data,
                  bool reset) {
  OneBatch batch(model, std::move(step), data);
  Training& training = Training::of(*model);
  const auto run = [&] {
    if (reset) training.reset_metrics(*model);
    batch.loop.run(1);
    batch.loop.join();
    std::vector<Logs::Entry> entries;
    internal::StepLogs(*model, batch.loop).read(entries);
    Logs logs;
    for (const auto& [name, value] : entries) logs.set(name, value);
    return internal::form_of(logs);
  };
  return internal::logs_of(batch.loop.runner().run_loop([&] {
    if (training.fit != nullptr) training.fit->settle();  // its metrics stand still
    return reset ? internal::keeping_outer_metrics(training, *model, run) : run();
  }));
}

// What `call` returns. Its errors may be of this task alone.
template <class Call>
auto in_every_task(const Model& model, const Call& call) {
  std::optional<decltype(call())> result;
  internal::in_every_task(internal::strategy_of(model), [&] { result = call(); });
  return *std::move(result);
}

}  // namespace

void ModelHandle::compile(const CompileOptions& options) const {
  Model& own = model();
  const auto core = internal::strategy_of(own);
  const internal::StrategyScope scope(core);
  try {
    Training::of(own).compile(options, own);
  } catch (...) {
    core->make_runner()->fail(std::current_exception());
    throw;
  }
}

History ModelHandle::fit(const Data& data, const FitOptions& options) const {
  return in_every_task(model(), [&] { return internal::FitLoop(*this, data, options).run(); });
}

History ModelHandle::fit(const Data& x, const Structure& y, const FitOptions& options) const {
  return in_every_task(
      model(), [&] { return internal::FitLoop(*this, joined_data(x, y, "fit"), options).run(); });
}

Logs ModelHandle::evaluate(const Data& data, const EvaluateOptions& options) const {
  return in_every_task(model(), [&] { return internal::run_evaluation(*this, data, options); });
}

Logs ModelHandle::evaluate(const Data& x, const Structure& y,
                           const EvaluateOptions& options) const {
  return in_every_task(model(), [&] {
    return internal::run_evaluation(*this, joined_data(x, y, "evaluate"), options);
  });
}

Structure ModelHandle::predict(const Data& data, const PredictOptions& options) const {
  return in_every_task(model(), [&] { return internal::run_prediction(*this, data, options); });
}

Logs ModelHandle::train_on_batch(const Structure& x, const Structure& y,
                                 const OnBatchOptions& options) const {
  const auto own = model_of(*this);
  return in_every_task(*own, [&] {
    return run_on_batch(own, Training::train_step(own, options.class_weight),
                        Data(x, y, options.sample_weight), options.reset_metrics);
  });
}

Logs ModelHandle::test_on_batch(const Structure& x, const Structure& y,
                                const OnBatchOptions& options) const {
  const auto own = model_of(*this);
  return in_every_task(*own, [&] {
    return run_on_batch(own, Training::test_step(own), Data(x, y, options.sample_weight),
                        options.reset_metrics);
  });
}

Structure ModelHandle::predict_on_batch(const Structure& x) const {
  return in_every_task(model(), [&] {
    const int64_t rows = std::max<int64_t>(internal::count_rows({x, {}, {}}), 1);
    return internal::run_prediction(*this, x, {.batch_size = rows, .verbose = 0});
  });
}

void ModelHandle::reset_metrics() const {
  for (const metrics::Metric& metric : metrics()) metric.reset_state();
}

bool ModelHandle::stop_training() const { return Training::of(model()).stop; }
void ModelHandle::set_stop_training(bool stop) const { Training::of(model()).stop = stop; }

}  // namespace cohort::keras
