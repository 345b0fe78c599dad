#include "cohort/keras/training/step_loop.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/data/graph/cardinality.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/range_watch.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/base/symbolic.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

using data::Dataset;
constexpr int64_t kDefaultBatch = 32;

data::Options sharded_by_rows() {
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  return options;
}

int64_t batch_size_of_rows(const InputPlan& plan) {
  const int64_t batch = plan.batch_size.value_or(kDefaultBatch);
  if (batch < 1) {
    throw InvalidArgumentError(str(plan.call, ": batch_size is ", batch, "; it must be 1 or more"));
  }
  return batch;
}

Dataset dataset_of_rows(const DataSource::Rows& rows, const InputPlan& plan) {
  const int64_t count = count_rows(rows);
  if (count == 0) throw InvalidArgumentError(str(plan.call, ": x has no examples"));
  Structure all = joined(rows);
  if (plan.with_index) all = tuple(at::arange(count, at::kLong), rows.x);
  Dataset dataset = Dataset::from_tensor_slices(all);
  if (plan.shuffle_seed) {
    // Not as a number of the dataset's own: where workers read, each has drawn another one, and
    // takes the order from the coordinator.
    const SeedScope seeds(*plan.shuffle_seed);
    dataset = dataset.shuffle(count);
  }
  dataset = dataset.batch(batch_size_of_rows(plan));
  if (plan.passes > 1) dataset = dataset.repeat(plan.passes);
  return dataset.with_options(sharded_by_rows());
}

// Elements (numbers of the rows, x).
Dataset numbered(const Dataset& dataset) {
  const auto number = [](const Structure& state, const Structure& batch) {
    const auto first = state.tensor().item<int64_t>();
    const Structure x = keras::unpack_x_y_sample_weight(batch).x;
    const int64_t rows = x.flatten().at(0).sizes().at(0);
    return std::pair<Structure, Structure>(at::scalar_tensor(first + rows, at::kLong),
                                           tuple(at::arange(first, first + rows, at::kLong), x));
  };
  return dataset.scan(at::scalar_tensor(0, at::kLong), number).with_options(sharded_by_rows());
}

double log_number(const keras::Model& model, const std::string& name, const Structure& value) {
  const bool is_number =
      value.is_leaf() && !value.leaf().is_strings() && value.tensor().numel() == 1;
  if (is_number) return value.tensor().item<double>();
  throw InvalidArgumentError(str("train_step of model '", model.name(), "' returned ",
                                 value.is_leaf() ? describe_leaves(value) : str(value), " under '",
                                 name, "'; the logs take scalars, such as its mean"));
}

}  // namespace

int64_t batches_of(const DataSource::Rows& rows, const InputPlan& plan) {
  const int64_t batch = batch_size_of_rows(plan);
  return (count_rows(rows) + batch - 1) / batch;
}

std::shared_ptr<StepInput> make_step_input(StepRunner& runner, const DataSource& source,
                                           const InputPlan& plan) {
  if (const auto* rows = source.rows()) return runner.make_input(dataset_of_rows(*rows, plan));
  if (plan.batch_size) {
    throw InvalidArgumentError(str(plan.call, ": batch_size is ", *plan.batch_size,
                                   ", but a dataset has batches of its own; call .batch(",
                                   *plan.batch_size, ") on it instead"));
  }
  if (const auto* dataset = std::get_if<Dataset>(&source.value)) {
    check_not_examples(*dataset->node());
    return runner.make_input(plan.with_index ? numbered(*dataset) : *dataset);
  }
  if (const auto* distributed = std::get_if<distribute::DistributedDataset>(&source.value)) {
    return runner.make_input(*distributed);
  }
  const auto& creator = std::get<DataSource::Creator>(source.value);
  const auto batches = [fn = creator.fn](const distribute::InputContext& context) {
    const Dataset dataset = fn(context);
    check_not_examples(*dataset.node());
    return dataset;
  };
  return runner.make_input(batches, creator.options);
}

StrategyScope::StrategyScope(const std::shared_ptr<StrategyCore>& core) {
  if (!core->is_default()) scope_.emplace(core);
}

StepLoop::StepLoop(std::shared_ptr<StrategyCore> core, std::shared_ptr<const StepFunction> step)
    : runner_(core->make_runner()), step_(std::move(step)) {
  runner_->declare(step_);
}

bool StepLoop::has_next(int64_t at_once, int64_t most) {
  if (knows_end_) return most > 0 && input_->has_next();
  // One execution more for each that is counted: schedule() waits while all workers are busy.
  for (int64_t more = std::min(at_once, most);
       (more > 0 || found_ < at_once) && ahead() < most && input_->has_next(); --more) {
    schedule();
    collect();
  }
  while (found_ < at_once && !under_way_.empty()) wait_for_first();
  return found_ > 0;
}

int64_t StepLoop::run(int64_t steps) {
  if (!knows_end_) {
    const int64_t counted = std::min(steps, found_);
    found_ -= counted;
    return counted;
  }
  int64_t done = 0;
  while (done < steps && (done == 0 || input_->has_next())) {
    done += schedule_several(steps - done);
    collect();
  }
  return done;
}

int64_t StepLoop::schedule_several(int64_t most) {
  std::vector<std::future<Structure>> scheduled = runner_->schedule_several(step_, input_, most);
  std::move(scheduled.begin(), scheduled.end(), std::back_inserter(under_way_));
  return std::ssize(scheduled);
}

void StepLoop::wait_for_first() {
  under_way_.front().wait();
  collect();
}

void StepLoop::collect() {
  while (!under_way_.empty() &&
         under_way_.front().wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    std::future<Structure> first = std::move(under_way_.front());
    under_way_.pop_front();
    try {
      result_ = first.get();
      has_result_ = true;
      if (!knows_end_) ++found_;
      if (kept_) kept_->push_back(result_);
    } catch (const OutOfRangeError&) {  // if it is more than the end of the pass, join throws it
      runner_->join();
    } catch (...) {
      runner_->join();
      throw;
    }
  }
}

const Structure& StepLoop::result() {
  collect();
  if (!has_result_ && !under_way_.empty()) wait_for_first();
  return result_;
}

void StepLoop::join() {
  runner_->join();
  collect();
}

void StepLogs::read(std::vector<keras::Logs::Entry>& entries) {
  const Structure& result = loop_.result();
  read_metrics(Training::of(const_cast<keras::Model&>(model_)).metrics(model_), entries);
  RangeWatch::check(*strategy_of(model_));
  if (result.num_leaves() == 0) return;
  if (!result.is_dict()) {
    throw InvalidArgumentError(str("train_step of model '", model_.name(), "' returned ", result,
                                   "; it returns a dict of scalars for the logs, or nothing"));
  }
  for (const auto& [name, value] : result.items()) {
    check_is_of_training(name, str("a step of model ", quoted(model_.name()), " gives a number"));
    const auto found =
        std::find_if(entries.begin(), entries.end(),
                     [&, key = &name](const auto& one) { return one.first == *key; });
    const double number = log_number(model_, name, value);
    if (found == entries.end()) {
      entries.emplace_back(name, number);
    } else {
      found->second = number;
    }
  }
}

int64_t steps_to_run(const std::optional<int64_t>& steps, const char* option,
                     const StepInput& input) {
  if (steps && *steps != -1) {
    if (*steps > 0) return *steps;
    throw InvalidArgumentError(
        str(option, " is ", *steps, "; give 1 or more, or -1 for as many as there are data"));
  }
  if (input.cardinality() == data::kInfiniteCardinality) {
    throw InvalidArgumentError(str("the data never ends: give ", option));
  }
  return kAllSteps;
}

int64_t expected_steps(int64_t steps_to_run, const StepInput& input) {
  return steps_to_run == kAllSteps ? input.cardinality() : steps_to_run;
}

int resolve_verbose(int verbose, const StrategyCore& core) {
  if (verbose < keras::kVerboseAuto || verbose > 2) {
    throw InvalidArgumentError(str("verbose is ", verbose,
                                   "; it is 0 (nothing), 1 (a bar), 2 (a line an epoch) or "
                                   "kVerboseAuto"));
  }
  if (verbose != keras::kVerboseAuto) return verbose;
  return ::isatty(STDOUT_FILENO) == 1 && !core.group().spans_tasks() ? 1 : 2;
}

namespace {

StructureSpec spec_of_x(const StructureSpec& batch) {
  return batch.is_tuple() && !batch.members().empty() ? batch.members()[0] : batch;
}

// But for the number of rows.
bool knows_sizes(const StructureSpec& spec) {
  const std::vector<TensorSpec> leaves = spec.flatten();
  return std::all_of(leaves.begin(), leaves.end(), [](const TensorSpec& leaf) {
    if (!leaf.shape()) return false;
    const auto& shape = *leaf.shape();
    return std::none_of(shape.begin() + (shape.empty() ? 0 : 1), shape.end(),
                        [](int64_t size) { return size == kUnknownDim; });
  });
}

// A batch of data whose spec does not say how large it is.
StructureSpec example_of_x(const StepInput& input) {
  return spec_of_x(StructureSpec::of(input.example())).map([](const TensorSpec& leaf) {
    return leaf.shape()->empty() ? leaf : leaf.with_batch_dim(kUnknownDim);
  });
}

StructureSpec outputs_on(const std::shared_ptr<keras::Model>& model, const StepInput& input) {
  StructureSpec x = spec_of_x(input.element_spec());
  const keras::layers::LayerHandle layer(model);
  if (knows_sizes(x)) return infer_outputs(layer, x, {});
  if (const auto outputs = model->output_spec(); model->built() && outputs) return *outputs;
  std::exception_ptr unread;
  try {
    x = example_of_x(input);
  } catch (const Error&) {  // a task without data: a model that takes all sizes needs none
    unread = std::current_exception();
  }
  try {
    return infer_outputs(layer, x, {});
  } catch (const Error&) {
    if (unread == nullptr) throw;
  }
  const ErrorRecord reason = record_error(unread);
  throw_error(
      reason.code == Code::kOutOfRange ? Code::kInvalidArgument : reason.code,
      str("model '", model->name(), "' is not built, and the sizes of its inputs are known ",
          "only from the first batch, which could not be read here: ", reason.message,
          "; give GeneratorOptions.output_spec, or build the model"));
}

}  // namespace

void make_variables(const std::shared_ptr<keras::Model>& model, const StepInput& input) {
  if (!strategy_of(*model)->steps_run_elsewhere()) return;
  const StructureSpec outputs = outputs_on(model, input);
  Training& training = Training::of(*model);
  if (!training.is_compiled()) return;
  CompiledModel& compiled = training.compiled(*model);
  compiled.prepare(outputs.make_structure(
      [](const TensorSpec&) -> Leaf { return at::scalar_tensor(0, at::kFloat); }));
  compiled.optimizer().build(model->trainable_variables());
}

}  // namespace cohort::internal
