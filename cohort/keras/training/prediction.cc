#include "cohort/keras/training/prediction.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/range_watch.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/model/callback_list.h"
#include "cohort/keras/training/agree_on_call.h"
#include "cohort/keras/training/interrupt_requests.h"
#include "cohort/keras/training/progbar_logger.h"
#include "cohort/keras/training/step_loop.h"

namespace cohort::internal {
namespace {

// Errors: InvalidArgument (the rows of two batches differ in shape).
void check_rows_alike(const std::vector<Leaf>& batches, const std::string& model) {
  const auto row = [](const Leaf& leaf) {
    const std::vector<int64_t> sizes = leaf.sizes();
    return std::vector<int64_t>(sizes.begin() + 1, sizes.end());
  };
  for (size_t i = 1; i < batches.size(); ++i) {
    if (row(batches[i]) == row(batches[0])) continue;
    throw InvalidArgumentError(
        str("predict: model ", quoted(model), " gives ", describe_leaves(batches[0]),
            " for the first batch, but ", describe_leaves(batches[i]), " for batch ", i,
            ", and rows of unlike shapes make no tensor; pad all batches alike (padded_batch with "
            "padded_shapes), or call predict_on_batch for each"));
  }
}

Structure concatenated(const std::vector<Structure>& parts, const std::string& model) {
  if (parts.size() == 1) return parts[0];
  return map_structures(parts, [&](const std::vector<Leaf>& leaves) -> Leaf {
    check_rows_alike(leaves, model);
    if (leaves[0].is_strings()) {
      std::vector<StringTensor> strings;
      for (const Leaf& leaf : leaves) strings.push_back(leaf.strings());
      return concat(strings);
    }
    std::vector<Tensor> tensors;
    for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
    return at::cat(tensors, 0);
  });
}

StringTensor rows_of(const StringTensor& strings, const Tensor& order) {
  std::vector<StringTensor> rows;
  for (int64_t i = 0; i < order.numel(); ++i) {
    const auto row = order[i].item<int64_t>();
    rows.push_back(strings.slice(0, row, row + 1));
  }
  return concat(rows);
}

// (numbers of the rows, outputs) -> outputs by these numbers.
Structure in_order(const Structure& numbered) {
  const Tensor order = numbered[0].tensor().argsort();
  if (order.numel() == 0) return numbered[1];
  return numbered[1].map([&](const Leaf& leaf) -> Leaf {
    if (leaf.is_strings()) return rows_of(leaf.strings(), order);
    return leaf.tensor().index_select(0, order);
  });
}

[[noreturn]] void end_interrupted(int64_t done) {
  throw InterruptedError(str("interrupted: prediction ended after step ", done));
}

struct PredictPlan {
  int64_t steps = kAllSteps;
  int64_t at_once = 1;  // steps between two calls of the hooks
};

Structure predict_all(StepLoop& loop, const PredictPlan& plan, const std::string& model,
                      keras::callbacks::CallbackList& callbacks, InterruptRequests& interrupts) {
  callbacks.on_predict_begin();
  loop.keep_results();
  int64_t done = 0;
  while (loop.has_next(plan.at_once, plan.steps - done)) {
    callbacks.on_predict_batch_begin(done);
    done += loop.run(std::min(plan.at_once, plan.steps - done));
    callbacks.on_predict_batch_end(done - 1);
    if (interrupts.any()) end_interrupted(done);
  }
  loop.join();
  if (interrupts.any_now()) end_interrupted(done);
  const std::vector<Structure> parts = loop.take_results();
  if (parts.empty()) throw InvalidArgumentError("predict: the data has no batches");
  const auto found = static_cast<int64_t>(parts.size());
  if (plan.steps != kAllSteps && found < plan.steps) {
    log_warning("predict: the data has ended after ", found, " of ", plan.steps, " steps");
  }
  callbacks.on_predict_end();
  return concatenated(parts, model);
}

}  // namespace

Structure run_prediction(const keras::ModelHandle& handle, const keras::Data& data,
                         const keras::PredictOptions& options) {
  const auto model = model_of(handle);
  const auto core = strategy_of(*model);
  const StrategyScope scope(core);
  agree_on_call(*core, options);
  // Tasks that share the data get its rows in turn. Of what they read by themselves nobody knows an
  // order.
  const bool whole =
      data.source().rows() != nullptr || std::holds_alternative<data::Dataset>(data.source().value);
  const bool with_index = core->input_is_shared() && whole;
  StepLoop loop(core, Training::predict_step(model, with_index));
  loop.set_input(make_step_input(
      loop.runner(), data.source(),
      {.call = "predict", .batch_size = options.batch_size, .with_index = with_index}));
  make_variables(model, *loop.input());
  const int64_t steps = steps_to_run(options.steps, "steps", *loop.input());
  const int verbose = resolve_verbose(options.verbose, *core);
  keras::callbacks::CallbackList callbacks(options.callbacks);
  if (verbose > 0) callbacks.append(std::make_shared<keras::callbacks::ProgbarLogger>());
  callbacks.set_model(handle);
  callbacks.set_params({.steps = expected_steps(steps, *loop.input()), .verbose = verbose});
  const Training& training = Training::of(*model);
  const PredictPlan plan{
      .steps = steps,
      .at_once = training.is_compiled() ? training.compiled(*model).steps_per_execution() : 1};
  return loop.runner().run_loop([&] {
    InterruptRequests interrupts(core);
    const Structure all = predict_all(loop, plan, model->name(), callbacks, interrupts);
    RangeWatch::check(*core);
    return with_index ? in_order(all) : all;
  });
}

}  // namespace cohort::internal
