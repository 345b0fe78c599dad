#include "cohort/keras/training/training.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/step/recorded_steps.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/training/class_weights.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/objects/checkpoint_restore.h"

namespace cohort {
namespace internal {

using distribute::ReplicaContext;
using keras::Batch;
using keras::Model;

namespace {

constexpr const char* kOptimizerName = "optimizer";  // beside the children of the model

// Holds the place of an object that is still to be made.
class WaitingObject final : public train::Trackable {
 public:
  bool awaits_children() const override { return true; }
};

}  // namespace

Training& Training::of(Model& model) {
  if (model.training_ == nullptr) model.training_ = std::make_shared<Training>();
  return *model.training_;
}

void Training::compile(const keras::CompileOptions& options, Model& model) {
  if (turns.are_taken()) {
    throw FailedPreconditionError(
        str("compile: model ", quoted(model.name()),
            " is trained or evaluated at this moment, by this thread or another; call compile when "
            "that has ended, not in a callback"));
  }
  const auto compiled = std::make_shared<CompiledModel>(
      options, model.dtype_policy(), [&model](size_t count) { return model.output_names(count); });
  restore_waiting(compiled->optimizer(), model);
  waiting_optimizer_ = nullptr;
  compiled_ = compiled;
  graphs_ = {};
  stop = false;
}

void Training::keep_optimizer_values(Model& model) {
  waiting_optimizer_ = nullptr;
  const auto& position = restore_position(model);
  if (position == nullptr) return;
  const auto waiting = std::make_shared<WaitingObject>();
  position->session->restore_late(position->node, kOptimizerName, *waiting);
  if (restore_position(*waiting) != nullptr) waiting_optimizer_ = waiting;
}

std::shared_ptr<train::Trackable> Training::waiting_optimizer(Model& model) const {
  if (waiting_optimizer_ == nullptr) return nullptr;
  const auto& of_model = restore_position(model);
  const bool is_latest = of_model->session == restore_position(*waiting_optimizer_)->session;
  return is_latest ? waiting_optimizer_ : nullptr;
}

void Training::restore_waiting(const keras::optimizers::Optimizer& optimizer, Model& model) const {
  if (waiting_optimizer(model) == nullptr) return;
  const RestorePosition& position = *restore_position(model);
  const std::string file = quoted(position.session->prefix());
  try {
    position.session->restore_late(position.node, kOptimizerName, *optimizer.trackable());
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(
        "compile: the optimizer beside the weights in ", file, " is not this one, so nothing has ",
        "changed: compile with the one that was saved, or read the weights without it first, by ",
        "train::Checkpoint(model).read(", quoted(position.session->prefix(), '"'),
        ").expect_partial(): ", error.what()));
  }
  log_info("compile: the optimizer goes on with its values in ", file);
}

CompiledModel& Training::compiled(const Model& model) const {
  if (compiled_ == nullptr) {
    throw FailedPreconditionError(str("model '", model.name(),
                                      "' is not compiled: call compile({.optimizer = ..., .loss = "
                                      "...}) before fit and evaluate"));
  }
  return *compiled_;
}

std::vector<NamedMetric> Training::metrics(const Model& model) const {
  const std::vector<NamedMetric> known =
      compiled_ == nullptr ? std::vector<NamedMetric>() : compiled_->metrics();
  std::vector<NamedMetric> all;
  for (const keras::metrics::Metric& metric : model.metrics()) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const NamedMetric& one) {
      return one.metric.trackable() == metric.trackable();
    });
    all.push_back(found == known.end() ? NamedMetric{metric.name(), metric} : *found);
  }
  return all;
}

void Training::report_to(const std::shared_ptr<ReportedMetrics>& reported, Model& model) {
  reported_ = reported;
  if (compiled_ != nullptr) compiled_->report_to(reported);
  Visited visited;
  LayerState::of(model).report_means_to(reported, visited);
}

void Training::reset_metrics(const Model& model) {
  for (const NamedMetric& one : metrics(model)) one.metric.reset_state();
  if (const auto reported = reported_.lock()) reported->stop_waiting();
}

namespace {

// What decides on the operations of a model's step beside its data.
void add_layers(const Model& model, GraphKey& form) {
  Visited visited;
  LayerState::of(model).for_each_layer(
      [&](const keras::layers::Layer& layer) {
        form.push_back(reinterpret_cast<uintptr_t>(&layer) << 1 | uint64_t{layer.trainable()});
      },
      visited);
}

const char* name_of(Training::StepKind kind) {
  constexpr const char* kNames[] = {"fit", "evaluate", "predict"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

std::optional<distribute::StepGraphs> Training::graphs(const std::shared_ptr<Model>& model,
                                                       StepKind kind) {
  if (compiled_ != nullptr && compiled_->options().run_eagerly) return std::nullopt;
  const std::shared_ptr<StrategyCore> core = strategy_of(*model);
  if (core->is_default() || core->steps_run_elsewhere()) return std::nullopt;
  if (torch_device(core->worker_devices()[0]).is_cpu()) return std::nullopt;
  std::optional<distribute::StepGraphs>& graphs = graphs_[static_cast<size_t>(kind)];
  if (!graphs) {
    graphs.emplace(std::make_shared<RecordedSteps>(RecordedSteps::Options{
        .what = str(name_of(kind), ": a step of model ", quoted(model->name())),
        .add_to_form = [model = model.get()](GraphKey& form) { add_layers(*model, form); }}));
  }
  return graphs;
}

std::shared_ptr<const StepFunction> Training::train_step(std::shared_ptr<Model> model,
                                                         const ClassWeights& weights) {
  const auto table = of(*model).use_class_weights(weights);
  const auto step = [model, table](const Structure& data) {
    return model->train_step(table == nullptr ? data : table->apply(data));
  };
  return make_step("fit/" + model->name(), step, {StepReduction::kSum},
                   of(*model).graphs(model, StepKind::kTrain));
}

std::shared_ptr<const ClassWeightTable> Training::use_class_weights(const ClassWeights& weights) {
  if (weights == class_weights_) return class_weight_table_;
  class_weight_table_ = weights.empty() ? nullptr : std::make_shared<ClassWeightTable>(weights);
  class_weights_ = weights;
  graphs_[static_cast<size_t>(StepKind::kTrain)].reset();
  return class_weight_table_;
}

std::shared_ptr<const StepFunction> Training::test_step(std::shared_ptr<Model> model) {
  return make_step(
      "evaluate/" + model->name(),
      [model](const Structure& data) { return model->test_step(data); }, {StepReduction::kSum},
      of(*model).graphs(model, StepKind::kTest));
}

namespace {

// Errors: InvalidArgument (a scalar is no row of each row).
void check_outputs_of_rows(const Model& model, const Structure& outputs) {
  outputs.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    if (leaf.dim() > 0) return;
    throw InvalidArgumentError(str("predict: model ", quoted(model.name()), " gives ",
                                   describe_leaves(leaf), " as its output", path,
                                   ", but predict joins the outputs' rows, one for each row of the "
                                   "data; give the output a batch dimension, or call the model"));
  });
}

}  // namespace

std::shared_ptr<const StepFunction> Training::predict_step(std::shared_ptr<Model> model,
                                                           bool with_index) {
  const auto predict = [model, with_index](const Structure& data) -> Structure {
    const Structure outputs = model->predict_step(with_index ? data[1] : data);
    check_outputs_of_rows(*model, outputs);
    return with_index ? tuple(data[0], outputs) : outputs;
  };
  return make_step("predict/" + model->name(), predict, {StepReduction::kConcat},
                   of(*model).graphs(model, StepKind::kPredict));
}

std::shared_ptr<Model> model_of(const keras::ModelHandle& handle) {
  return std::static_pointer_cast<Model>(handle.pointer());
}

void read_metrics(const std::vector<NamedMetric>& metrics,
                  std::vector<keras::Logs::Entry>& entries) {
  entries.clear();
  for (const NamedMetric& one : metrics) {
    auto& state = static_cast<MetricState&>(*one.metric.trackable());
    const std::optional<Tensor> result = state.result_if_any();
    if (!result) continue;
    check_is_scalar(one.log_name, *result);
    entries.emplace_back(one.log_name, result->item<double>());
  }
}

void write_for_all(const Model& model, FunctionRef<void()> write) {
  const std::shared_ptr<StrategyCore> core = strategy_of(model);
  if (!core->steps_run_elsewhere()) return write();
  const auto runner = core->make_runner();
  runner->declare(make_step("save/" + model.name(), [] {}));  // gives the call its name
  runner->run_loop([&] {
    write();
    return Structure();
  });
}

}  // namespace internal

namespace keras {

using internal::str;
using internal::Training;

namespace {

// first: nullptr where compile has it.
[[noreturn]] void throw_metric_name_twice(const Model& model, const std::string& name,
                                          const layers::Layer* first, const layers::Layer& second) {
  const std::string of_first = first == nullptr
                                   ? "compile has one"
                                   : str("layer ", internal::quoted(first->name()), " adds one");
  throw InvalidArgumentError(str("model ", internal::quoted(model.name()),
                                 " has two metrics that are called ", internal::quoted(name), ": ",
                                 of_first, " and layer ", internal::quoted(second.name()),
                                 " another by add_metric; give that one another name (name() + \"_",
                                 name, "\" tells layers apart)"));
}

}  // namespace

std::vector<metrics::Metric> Model::metrics() const {
  std::vector<metrics::Metric> all;
  std::map<std::string, const layers::Layer*> owners;  // nullptr: compile
  if (training_ != nullptr && training_->is_compiled()) {
    for (const internal::NamedMetric& one : training_->compiled(*this).metrics()) {
      all.push_back(one.metric);
      owners.emplace(one.log_name, nullptr);
    }
  }
  std::vector<internal::LayerState::AddedMetric> added;
  internal::Visited visited;
  internal::LayerState::of(*this).collect_metrics(added, visited);
  for (const auto& [metric, layer] : added) {
    const auto [other, is_new] = owners.emplace(metric.name(), layer);
    if (!is_new) throw_metric_name_twice(*this, metric.name(), other->second, *layer);
    all.push_back(metric);
  }
  return all;
}

std::vector<std::string> Model::output_names(size_t count) const {
  std::vector<std::string> names;
  for (size_t i = 1; i <= count; ++i) names.push_back(internal::str("output_", i));
  return names;
}

const optimizers::Optimizer& Model::optimizer() const {
  return Training::of(const_cast<Model&>(*this)).compiled(*this).optimizer();
}

Tensor Model::compute_loss(const Structure& y, const Structure& y_pred,
                           const Structure& sample_weight) {
  return Training::of(*this).compiled(*this).compute_loss(y, y_pred, sample_weight, losses());
}

void Model::compute_metrics(const Structure& y, const Structure& y_pred,
                            const Structure& sample_weight) {
  Training::of(*this).compiled(*this).update_metrics(y, y_pred, sample_weight);
}

Structure Model::train_step(const Structure& data) {
  const Batch batch = unpack_x_y_sample_weight(data);
  GradientTape tape;
  const Structure y_pred = (*this)(batch.x, {.training = true});
  const Tensor loss = compute_loss(batch.y, y_pred, batch.sample_weight);
  optimizer().minimize(loss, trainable_variables(), tape);
  compute_metrics(batch.y, y_pred, batch.sample_weight);
  return Structure();
}

Structure Model::test_step(const Structure& data) {
  const Batch batch = unpack_x_y_sample_weight(data);
  const Structure y_pred = (*this)(batch.x, {.training = false});
  compute_loss(batch.y, y_pred, batch.sample_weight);
  compute_metrics(batch.y, y_pred, batch.sample_weight);
  return Structure();
}

Structure Model::predict_step(const Structure& data) {
  return (*this)(unpack_x_y_sample_weight(data).x, {.training = false});
}

}  // namespace keras
}  // namespace cohort
