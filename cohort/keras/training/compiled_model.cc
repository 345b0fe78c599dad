#include "cohort/keras/training/compiled_model.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/optimizers/loss_scale_optimizer.h"
#include "cohort/keras/training/compile_checks.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/small_sums.h"

namespace cohort::internal {

using keras::losses::Reduction;

namespace {

template <class Named>
auto find_by_name(const Named& named, const std::string& name) {
  return std::find_if(named.begin(), named.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

// Output number `index` of labels or weights that stand in the form of the outputs.
// Errors: InvalidArgument (none for this output).
const Structure& member_for(const Structure& whole, size_t index, const std::string& name,
                            size_t count, const char* what) {
  if (whole.is_leaf() && count == 1) return whole;
  if (whole.is_dict() && whole.contains(name)) return whole[name];
  if (whole.is_dict() && count == 1 && whole.size() == 1) return whole[0];
  if (whole.is_tuple() && whole.size() == count) return whole[index];
  throw InvalidArgumentError(str("the model has ", count, count == 1 ? " output" : " outputs",
                                 name.empty() ? "" : str(", of which one is ", quoted(name)),
                                 ", but ", what, " are ", whole,
                                 "; give as many, in the same order or by the outputs' names"));
}

// An output of the model, and its place among them.
struct Place {
  size_t index;
  size_t count;  // of outputs
  const std::string& name;
  const Tensor& prediction;
};

// What takes labels, for errors: texts are made where there is one.
struct Taker {
  const char* kind;
  const std::string& name;
};

// The labels of an output. Errors: InvalidArgument (none for it; strings, ragged or sparse ones:
// names them, and what takes them).
Tensor labels_for(const Structure& labels, const Place& output, const Taker& taker) {
  const bool are_one_composite = composite_kind(labels) != Composite::kNone;
  const Structure& own =
      are_one_composite ? labels
                        : member_for(labels, output.index, output.name, output.count, "the labels");
  const Composite kind = composite_kind(own);
  const bool are_strings = own.is_leaf() && own.leaf().is_strings();
  if (kind == Composite::kNone && !are_strings) {
    return with_rows_of(own.tensor(), output.prediction);
  }
  const std::string what = are_strings                  ? describe_leaves(own)
                           : kind == Composite::kSparse ? "a sparse tensor"
                                                        : "a RaggedTensor";
  throw InvalidArgumentError(
      str("the labels", output.name.empty() ? "" : str(" of output ", quoted(output.name)), " are ",
          what, ", but ", taker.kind, " ", quoted(taker.name), " takes ",
          are_strings ? "numbers; a StringLookup layer makes numbers of strings"
          : kind == Composite::kSparse
              ? "dense tensors; call to_dense() in the dataset's map"
              : "dense tensors; call to_tensor() in the dataset's map, which pads the rows"));
}

// The weights of an output: one tensor weighs all outputs, a dict those that it names. Undefined:
// there are none.
Tensor weight_for(const Structure& weights, const Place& output) {
  if (weights.num_leaves() == 0) return {};
  const bool has_others = weights.is_dict() && output.count > 1;
  if (has_others && !weights.contains(output.name)) return {};
  const Structure& own = weights.is_leaf() ? weights
                                           : member_for(weights, output.index, output.name,
                                                        output.count, "the sample weights");
  if (own.num_leaves() == 0) return {};
  return with_rows_of(own.tensor(), output.prediction);
}

distribute::ReplicaContext& replica_of_step() {
  distribute::ReplicaContext* const replica = distribute::get_replica_context();
  if (replica == nullptr) {
    throw FailedPreconditionError(
        "compute_loss was called outside of a step; call it in train_step or test_step");
  }
  return *replica;
}

// The weight of each prediction for a metric: 0 where the model has masked it.
Tensor masked_weight(const Tensor& weight, const Tensor& prediction) {
  const Tensor mask = mask_of(prediction);
  if (!mask.defined()) return weight;
  const Tensor factors = mask.to(prediction.scalar_type());
  if (!weight.defined()) return factors;
  return factors * broadcast_weights(weight, factors, "metrics");
}

// Errors: InvalidArgument (a list of another length than there are outputs).
void check_one_each(const keras::CompileOptions& options, size_t outputs) {
  const auto check = [&](size_t given, const char* one, const char* several) {
    if (given == 0 || given == outputs) return;
    throw InvalidArgumentError(
        str("compile got ", given, " ", given == 1 ? one : several, " for a model with ", outputs,
            outputs == 1 ? " output" : " outputs", "; a list has one for each, in their order"));
  };
  check(options.loss.list().size(), "loss", "losses");
  check(options.loss_weights.list().size(), "loss weight", "loss weights");
}

int64_t rows_of(const Tensor& tensor) { return tensor.dim() == 0 ? 1 : tensor.size(0); }

bool has_rows(const Structure& y_pred) {
  const std::vector<Leaf> leaves = y_pred.flatten();
  return leaves.empty() || !has_no_rows(leaves[0].tensor());
}

// The rows of the whole batch. COLLECTIVE.
int64_t rows_of_batch(distribute::ReplicaContext& replica, int64_t rows) {
  if (replica.num_replicas_in_sync() == 1) return rows;
  const NoGradient no_gradient;
  return replica.all_reduce(distribute::ReduceOp::SUM, at::scalar_tensor(rows, at::kLong))
      .item<int64_t>();
}

keras::optimizers::Optimizer scaled_for(const keras::mixed_precision::Policy& policy,
                                        const keras::optimizers::Optimizer& optimizer) {
  const bool is_right = policy.name() != "mixed_float16" || scaled_optimizer(optimizer) != nullptr;
  if (is_right) return optimizer;
  return keras::mixed_precision::LossScaleOptimizer(optimizer);
}

}  // namespace

LossMean::LossMean(const std::string& name) : Metric(make_mean_state(name)) {}

void LossMean::add(const Tensor& mean, int64_t rows) const {
  // Means of nothing are no numbers. The sums are made all the same, on all replicas and tasks or
  // on none.
  if (rows == 0) {
    return state().add_nothing();
  }
  const NoGradient no_gradient;
  if (const std::optional<double> number = number_on_host(mean)) {
    const double total = *number * static_cast<double>(rows);  // of floats exact
    const bool is_float = mean.scalar_type() == at::kFloat;
    return state().add_numbers(
        {is_float ? static_cast<float>(total) : total, static_cast<double>(rows)});
  }
  state().add({mean.detach() * rows, at::scalar_tensor(rows, at::dtype(state().dtype()))});
}

CompiledModel::CompiledModel(const keras::CompileOptions& options,
                             const keras::mixed_precision::Policy& policy, OutputNames output_names)
    : options_(options),
      output_names_(std::move(output_names)),
      optimizer_(scaled_for(policy, options.optimizer.make())),
      steps_per_execution_(options.steps_per_execution),
      loss_mean_("loss") {
  if (steps_per_execution_ < 1) {
    throw InvalidArgumentError(
        str("compile: steps_per_execution is ", steps_per_execution_, "; it must be 1 or more"));
  }
  check_compile_options(options_);
  // A model with one output, as most are, has its metrics now, so that a checkpoint before the
  // first step finds them. The output's name is not known yet, but if compile names an output, it
  // is that one.
  const std::set<std::string> named = named_outputs();
  const bool one = options_.loss.list().size() <= 1 && options_.loss_weights.list().size() <= 1 &&
                   named.size() <= 1;
  if (one) outputs_ = make_outputs({named.empty() ? "" : *named.begin()});
}

std::set<std::string> CompiledModel::named_outputs() const {
  std::set<std::string> names;
  for (const auto& entry : options_.loss.named()) names.insert(entry.first);
  for (const auto& entry : options_.loss_weights.named()) names.insert(entry.first);
  for (const auto& entry : options_.metrics.named()) names.insert(entry.first);
  for (const auto& entry : options_.weighted_metrics.named()) names.insert(entry.first);
  return names;
}

std::optional<CompiledModel::LossPart> CompiledModel::make_loss(size_t index,
                                                                const std::string& name,
                                                                size_t count) const {
  const auto& losses = options_.loss;
  const keras::LossArgument* argument = nullptr;
  if (losses.one()) {
    argument = &*losses.one();
  } else if (!losses.list().empty()) {
    argument = &losses.list()[index];
  } else if (const auto found = find_by_name(losses.named(), name); found != losses.named().end()) {
    argument = &found->second;
  }
  if (argument == nullptr) return std::nullopt;
  const keras::losses::Loss loss = argument->loss();
  LossPart part{loss.with_reduction(Reduction::NONE), loss.reduction()};
  const auto& weights = options_.loss_weights;
  if (weights.one()) {
    part.weight = *weights.one();
  } else if (!weights.list().empty()) {
    part.weight = weights.list()[index];
  } else if (const auto found = find_by_name(weights.named(), name);
             found != weights.named().end()) {
    part.weight = found->second;
  }
  if (count > 1) part.mean.emplace(name + "_loss");
  return part;
}

bool CompiledModel::has_metric(const Output& output, const std::string& log_name) {
  return std::any_of(output.metrics.begin(), output.metrics.end(),
                     [&](const MetricPart& part) { return part.log_name == log_name; });
}

void CompiledModel::add_metrics(Output& output, const keras::MetricList& list, bool weighted,
                                size_t count) const {
  const auto add = [&](const keras::MetricArgument& metric, bool of_all) {
    const std::string prefix = count > 1 ? output.name + "_" : "";
    std::string log_name = prefix + metric.name();
    if (weighted && has_metric(output, log_name)) log_name = prefix + "weighted_" + metric.name();
    if (has_metric(output, log_name)) {
      throw InvalidArgumentError(str("compile got two metrics that are called ", quoted(log_name),
                                     " in the logs; give one of them another name"));
    }
    output.metrics.push_back({std::move(log_name),
                              of_all && count > 1 ? metric.make_another() : metric.make(),
                              weighted});
  };
  for (const keras::MetricArgument& metric : list.list()) add(metric, /*of_all=*/true);
  if (const auto own = find_by_name(list.named(), output.name); own != list.named().end()) {
    for (const keras::MetricArgument& metric : own->second) add(metric, /*of_all=*/false);
  }
}

void CompiledModel::check_names(const std::vector<std::string>& names) const {
  const auto check = [&](const auto& named, const char* what) {
    for (const auto& [name, value] : named) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::vector<std::string_view> known(names.begin(), names.end());
      throw_unknown_name(str("output (compile got ", what, " for it)"), name, {known, known});
    }
  };
  check(options_.loss.named(), "a loss");
  check(options_.loss_weights.named(), "a loss weight");
  check(options_.metrics.named(), "metrics");
  check(options_.weighted_metrics.named(), "weighted metrics");
}

std::vector<CompiledModel::Output> CompiledModel::make_outputs(
    const std::vector<std::string>& names) const {
  check_one_each(options_, names.size());
  std::vector<Output> outputs;
  for (size_t i = 0; i < names.size(); ++i) {
    Output output{.name = names[i]};
    output.loss = make_loss(i, names[i], names.size());
    add_metrics(output, options_.metrics, false, names.size());
    add_metrics(output, options_.weighted_metrics, true, names.size());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

void CompiledModel::check_weighted_outputs(const Structure& sample_weight) const {
  if (!sample_weight.is_dict() || outputs_.size() == 1) return;
  for (const auto& [name, weight] : sample_weight.items()) {
    const auto is_called = [&, wanted = &name](const Output& one) { return one.name == *wanted; };
    if (std::any_of(outputs_.begin(), outputs_.end(), is_called)) continue;
    std::vector<std::string_view> known;
    for (const Output& one : outputs_) known.push_back(one.name);
    throw_unknown_name("output (sample_weight has weights for it)", name, {known, known});
  }
}

const std::vector<CompiledModel::Output>& CompiledModel::bind(const Structure& y_pred) {
  if (bound_.load(std::memory_order_acquire)) return outputs_;
  const std::lock_guard lock(mutex_);
  if (bound_) return outputs_;
  std::vector<std::string> names;
  if (y_pred.is_dict()) {
    for (const auto& item : y_pred.items()) names.push_back(item.first);
  } else {
    names = output_names_(y_pred.is_leaf() ? 1 : y_pred.size());
  }
  check_names(names);
  if (outputs_.size() != names.size()) {
    std::vector<Output> outputs = make_outputs(names);
    if (const auto reported = reported_.lock()) {
      for (const NamedMetric& one : metrics_of(outputs)) {
        reported->appeared(one.log_name, one.metric);
      }
    }
    outputs_ = std::move(outputs);
  }
  bound_.store(true, std::memory_order_release);
  return outputs_;
}

Tensor CompiledModel::compute_loss(const Structure& y, const Structure& y_pred,
                                   const Structure& sample_weight,
                                   const std::vector<Tensor>& penalties) {
  const std::vector<Output>& outputs = bind(y_pred);
  check_weighted_outputs(sample_weight);
  distribute::ReplicaContext& replica = replica_of_step();
  const int replicas = replica.num_replicas_in_sync();
  const size_t count = outputs.size();
  c10::SmallVector<SumTerm, 8> minimized;
  c10::SmallVector<SumTerm, 8> reported;  // means over the rows of this replica
  int64_t counted = 0;                    // how often the reported number counts
  bool has_loss = false;
  for (size_t i = 0; i < count; ++i) {
    if (!outputs[i].loss) continue;
    has_loss = true;
    const LossPart& part = *outputs[i].loss;
    const Tensor& prediction = y_pred.is_leaf() ? y_pred.tensor() : y_pred[i].tensor();
    const int64_t rows = rows_of(prediction);
    const bool is_sum = part.reduction == Reduction::SUM;
    const bool is_each = part.reduction == Reduction::NONE;
    const int64_t batch_rows = is_sum || is_each ? rows_of_batch(replica, rows) : 0;
    // Each of the losses that stay apart counts as often as the batch has rows, as in Keras.
    const int64_t own_counted = is_each ? rows * batch_rows : rows;
    counted = std::max(counted, own_counted);
    if (rows == 0) {
      const Tensor nothing = widened(prediction.sum()) * 0;
      minimized.push_back({nothing});
      if (part.mean) part.mean->add(nothing.detach(), 0);
      reported.push_back({nothing.detach()});
      continue;
    }
    if (y.num_leaves() == 0) {
      throw InvalidArgumentError(
          "there are no labels for the loss: give y, or elements (x, y); or compile without a "
          "loss");
    }
    const Place output{i, count, outputs[i].name, prediction};
    const Tensor weight = weight_for(sample_weight, output);
    const Tensor labels = labels_for(y, output, {"loss", part.each.name()});
    const Tensor losses = part.each(labels, prediction, weight);
    const bool averages = !is_sum && !is_each;
    const Tensor own_mask = mask_of(losses);  // of a loss that leaves examples out
    const Tensor mask = own_mask.defined() ? own_mask : mask_of(prediction);
    const SumTerm mean = mask.defined() && averages
                             ? SumTerm{losses.sum() / count_unmasked(mask, losses)}
                             : SumTerm{losses, losses.numel()};
    // The mean over rows of what the replicas report is the batch's sum.
    const double parts = static_cast<double>(batch_rows) / static_cast<double>(rows);
    const SumTerm own = is_sum ? SumTerm{losses, 1, parts} : mean;
    minimized.push_back(
        {averages ? mean.x : losses, averages ? mean.divisor * replicas : 1, part.weight});
    reported.push_back({own.x, own.divisor, own.factor * part.weight});
    if (part.mean) {
      const NoGradient no_gradient;
      part.mean->add(sum_of_terms(own), own_counted);
    }
  }
  if (!has_loss) counted = has_rows(y_pred) ? 1 : 0;  // as in Keras, where all batches count alike
  for (const Tensor& penalty : penalties) {
    minimized.push_back({penalty, replicas});
    reported.push_back({penalty});
  }
  if (minimized.empty()) {
    throw InvalidArgumentError(
        "there is nothing to minimise: compile got no loss for any output of the model, and its "
        "layers add no penalties");
  }
  const Tensor total = sum_of_terms(minimized);
  // One number for both, where nothing is divided by the number of replicas.
  const bool is_one_number = replicas == 1 && reports_what_it_minimizes(outputs);
  const NoGradient no_gradient;
  loss_mean_.add(is_one_number ? total : sum_of_terms(reported), counted);
  return total;
}

void CompiledModel::update_metrics(const Structure& y, const Structure& y_pred,
                                   const Structure& sample_weight) {
  const std::vector<Output>& outputs = bind(y_pred);
  check_weighted_outputs(sample_weight);
  const size_t count = outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Output& output = outputs[i];
    if (output.metrics.empty()) continue;
    if (y.num_leaves() == 0) {
      throw InvalidArgumentError(str("there are no labels for the metric ",
                                     quoted(output.metrics[0].log_name),
                                     ": give y, or elements (x, y)"));
    }
    const Tensor& prediction = y_pred.is_leaf() ? y_pred.tensor() : y_pred[i].tensor();
    if (has_no_rows(prediction)) {  // a class of the program may have an update_state of its own
      for (const MetricPart& part : output.metrics) part.made.metric.variables();
      continue;
    }
    const Place place{i, count, output.name, prediction};
    const Tensor labels = labels_for(y, place, {"metric", output.metrics[0].log_name});
    for (const MetricPart& part : output.metrics) {
      const Tensor weight = part.weighted ? weight_for(sample_weight, place) : Tensor();
      part.made.update(labels, prediction, masked_weight(weight, prediction));
    }
  }
}

bool CompiledModel::reports_what_it_minimizes(const std::vector<Output>& outputs) {
  return std::none_of(outputs.begin(), outputs.end(), [](const Output& output) {
    return output.loss && output.loss->reduction == Reduction::NONE;
  });
}

std::vector<NamedMetric> CompiledModel::metrics() const {
  const std::lock_guard lock(mutex_);
  std::vector<NamedMetric> all = metrics_of(outputs_);
  all.insert(all.begin(), {"loss", loss_mean_});
  return all;
}

std::vector<NamedMetric> CompiledModel::metrics_of(const std::vector<Output>& outputs) {
  std::vector<NamedMetric> all;
  for (const Output& output : outputs) {
    if (output.loss && output.loss->mean)
      all.push_back({output.name + "_loss", *output.loss->mean});
  }
  for (const Output& output : outputs) {
    for (const MetricPart& part : output.metrics) all.push_back({part.log_name, part.made.metric});
  }
  return all;
}

}  // namespace cohort::internal
