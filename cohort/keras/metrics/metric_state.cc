#include "cohort/keras/metrics/metric_state.h"

#include <ATen/ops/full.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/read_together.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/small_sums.h"

namespace cohort {
namespace internal {

std::optional<double> number_on_host(const Tensor& value) {
  if (value.dim() != 0 || !value.is_cpu()) return std::nullopt;
  if (value.scalar_type() == at::kFloat) return *value.data_ptr<float>();
  if (value.scalar_type() == at::kDouble) return *value.data_ptr<double>();
  return std::nullopt;
}

namespace {

// A sum to which nothing was added.
Tensor empty_sum(at::IntArrayRef shape, DType dtype) { return at::full(shape, -0.0, dtype); }

bool is_empty_sum(const Tensor& sum) {
  if (!sum.is_floating_point()) return (sum == 0).all().item<bool>();
  if (const std::optional<double> number = number_on_host(sum)) {
    return *number == 0 && std::signbit(*number);
  }
  return ((sum == 0) & at::signbit(sum)).all().item<bool>();
}

// Beside one another, so that they can be read as they are at one moment.
std::vector<Variable> make_sums(const MetricState::Options& options,
                                const std::vector<Tensor>& empty) {
  std::vector<Variable> sums;
  std::optional<ScopedColocation> beside_first;
  for (size_t i = 0; i < empty.size(); ++i) {
    const DType dtype = empty[i].scalar_type();
    const distribute::VariableSpec spec{
        .shape = empty[i].sizes().vec(),
        .dtype = dtype,
        .options = {.name = str(options.name, "/", options.variable_names[i]),
                    .trainable = false,
                    .synchronization = VariableSynchronization::ON_READ,
                    .aggregation = VariableAggregation::SUM}};
    sums.push_back(create_own_variable(spec, {[dtype](const distribute::ShardInfo& shard) {
                                         return empty_sum(shard.shape, dtype);
                                       }}));
    if (!beside_first) beside_first.emplace(sums[0].impl());
  }
  return sums;
}

// Outside of steps, what is added is no replica's, and a sum over several replicas refuses it. The
// first replica of the sync group then counts it, in its own task: the others run the same program.
// False: nothing was done.
template <class Delta>
bool added_outside_of_steps(const Variable& target, const Delta& delta) {
  if (distribute::has_strategy() && !distribute::in_cross_replica_context()) return false;
  VariableImpl& variable = target.impl();
  const StrategyCore& core = *variable.core();
  if (core.is_default() || !variable.is_local() || core.num_replicas_in_sync() == 1) return false;
  const NoGradient no_gradient;
  LocalVariable& local = variable.local();
  const Tensor* const of_first = local.component_of(0);
  if (of_first == nullptr) return true;
  of_first->add_(delta);
  if (core.replica_id(0) == 0) local.mark_written(0);
  return true;
}

// -0 is added as 0: a sum of it is not one to which nothing was added.
void add_number(const Variable& target, double number) {
  number += 0.0;
  if (!added_outside_of_steps(target, number)) target.assign_add(number);
}

}  // namespace

MetricState::MetricState(Options options)
    : options_(std::move(options)),
      dtype_(keras_floatx()),
      strategy_(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr) {
  if (strategy_ == nullptr || !strategy_->steps_run_elsewhere()) return;
  if (options_.shape_is_classes) {
    throw InvalidArgumentError(
        str("metric '", options_.name, "': parameter servers make a metric's variables before the ",
            "first predictions are there; say how many classes (num_classes) or outputs ",
            "(num_outputs) there are"));
  }
  variables();
}

std::optional<std::vector<int64_t>> MetricState::shape() const {
  if (!options_.shape_is_classes) return options_.shape;
  std::lock_guard lock(shape_mutex_);
  if (classes_.empty()) return std::nullopt;
  return classes_;
}

void MetricState::see(const Tensor& predictions) {
  if (!options_.shape_is_classes || predictions.dim() == 0) return;
  const int64_t classes = predictions.size(-1);
  std::lock_guard lock(shape_mutex_);
  if (classes_.empty()) classes_ = {classes};
  if (classes_[0] == classes) return;
  throw InvalidArgumentError(str("metric '", name(), "' got predictions ", describe(predictions),
                                 ", but those before had ", classes_[0], " in the last dimension"));
}

std::vector<Tensor> MetricState::empty_sums() const {
  std::vector<Tensor> sums(options_.variable_names.size(),
                           empty_sum(shape().value_or(std::vector<int64_t>()), dtype_));
  if (options_.first_is_count) sums[0] = empty_sum({}, int32);
  return sums;
}

std::shared_ptr<MetricState> MetricState::another() const {
  auto made = std::make_shared<MetricState>(options_);
  made->class_name = class_name;
  made->config = config;
  return made;
}

const std::vector<Variable>& MetricState::variables() {
  if (build_once_.done() || !shape()) return variables_;
  std::optional<distribute::Scope> scope;
  if (strategy_ != nullptr && !distribute::has_strategy()) scope.emplace(strategy_);
  build_once_(str("metric '", name(), "'"), [&] {
    variables_ = make_sums(options_, empty_sums());
    for (const train::TrackableChild& child : named_variables()) {
      child_appeared(child.name, *child.object);
    }
  });
  return variables_;
}

std::vector<train::TrackableChild> MetricState::named_variables() const {
  std::vector<train::TrackableChild> children;
  for (size_t i = 0; i < variables_.size(); ++i) {
    children.push_back({options_.variable_names[i], &variables_[i].impl()});
  }
  return children;
}

std::vector<train::TrackableChild> MetricState::checkpoint_children() {
  variables();
  return named_variables();
}

void MetricState::add(at::ArrayRef<Tensor> deltas) {
  const std::vector<Variable>& targets = variables();
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto number = deltas[i].dim() == 0 ? number_on_host(deltas[i]) : std::nullopt;
    if (number) {
      add_number(targets[i], *number);
    } else if (!added_outside_of_steps(targets[i], deltas[i])) {
      targets[i].assign_add(deltas[i].to(targets[i].dtype()));
    }
  }
}

void MetricState::add_numbers(at::ArrayRef<double> deltas) {
  const std::vector<Variable>& targets = variables();
  for (size_t i = 0; i < targets.size(); ++i) add_number(targets[i], deltas[i]);
}

std::vector<Tensor> MetricState::values() {
  if (!build_once_.done() && (!distribute::has_strategy() || !shape())) return empty_sums();
  const NoGradient no_gradient;
  std::vector<Tensor> values;
  for (const Tensor& value : read_together(variables())) values.push_back(value.detach());
  return values;
}

Tensor MetricState::result_of(std::vector<Tensor> values) const {
  const NoGradient no_gradient;
  for (Tensor& value : values) {
    if (is_empty_sum(value)) value = at::zeros_like(value);
  }
  return options_.result(values).clone();
}

std::optional<Tensor> MetricState::result_if_any() {
  std::vector<Tensor> sums = values();
  if (std::all_of(sums.begin(), sums.end(), is_empty_sum)) return std::nullopt;
  return result_of(std::move(sums));
}

Tensor MetricState::result_of_nothing() const { return result_of(empty_sums()); }

Tensor MetricState::result() {
  distribute::ReplicaContext* replica = distribute::get_replica_context();
  if (replica == nullptr || !distribute::has_strategy()) return result_of(values());
  variables();
  return replica->merge_call([this](distribute::Strategy&) { return result_of(values()); });
}

void MetricState::check_outside_of_steps(const char* done, const char* call) const {
  if (!distribute::has_strategy() || distribute::in_cross_replica_context()) return;
  throw FailedPreconditionError(str("metric '", name(), "' was ", done, " inside of a step; call ",
                                    call, " between steps, or in merge_call"));
}

void MetricState::reset() {
  check_outside_of_steps("reset", "reset_state()");
  if (!build_once_.done()) return;
  const std::vector<Tensor> empty = empty_sums();
  for (size_t i = 0; i < variables_.size(); ++i) variables_[i].assign(empty[i]);
}

void MetricState::merge(MetricState& other) {
  check_outside_of_steps("merged", "merge_state()");
  const std::vector<Tensor> sums = other.values();
  if (sums.size() != options_.variable_names.size()) {
    throw InvalidArgumentError(str("metric '", other.name(), "' with ", sums.size(),
                                   " variables is not compatible with '", name(), "', which has ",
                                   options_.variable_names.size()));
  }
  if (std::all_of(sums.begin(), sums.end(), is_empty_sum)) return;
  see(sums.back());
  const std::vector<Tensor> own = empty_sums();
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].sizes() == own[i].sizes()) continue;
    throw InvalidArgumentError(str("metric '", other.name(), "' is not compatible with '", name(),
                                   "': its ", other.options_.variable_names[i], " is ",
                                   describe(sums[i]), ", not ", describe(own[i])));
  }
  add(sums);
}

MetricState::Sums MetricState::sums() const {
  if (!build_once_.done()) return {};
  const NoGradient no_gradient;
  Sums sums;
  for (const Variable& variable : variables_) {
    std::vector<Tensor>& own = sums.emplace_back();
    if (!variable.impl().is_local()) {
      own.push_back(variable.value().clone());
      continue;
    }
    for (const Tensor& kept : variable.impl().local().kept_components())
      own.push_back(kept.clone());
  }
  return sums;
}

void MetricState::put_back(const Sums& sums) {
  if (sums.empty()) return reset();
  const NoGradient no_gradient;
  for (size_t v = 0; v < sums.size(); ++v) {
    if (!variables_[v].impl().is_local()) {
      variables_[v].assign(sums[v][0]);
      continue;
    }
    // Not by assign, which divides a sum by the number of components.
    const LocalVariable& local = variables_[v].impl().local();
    for (size_t i = 0; i < sums[v].size(); ++i) local.kept_components()[i].copy_(sums[v][i]);
    for (size_t i = 0; i < local.num_components(); ++i) local.mark_written(i);
  }
}

std::shared_ptr<MetricState> make_mean_state(std::string name) {
  return std::make_shared<MetricState>(MetricState::Options{
      std::move(name), {"total", "count"}, [](const std::vector<Tensor>& values) {
        const Tensor& total = values[0];
        const Tensor& count = values[1];
        return at::where(count == 0, at::zeros_like(total), total / count);
      }});
}

Tensor without_inner_dims(const Tensor& values, const Tensor& weights, InnerDims inner) {
  // Weights with one dimension less get it as their last one.
  if (weights.dim() == 0 || values.dim() < weights.dim() + 2) return values;
  std::vector<int64_t> dims(static_cast<size_t>(values.dim() - weights.dim()));
  std::iota(dims.begin(), dims.end(), weights.dim());
  return inner == InnerDims::kMean ? values.mean(dims) : values.sum(dims);
}

Weighted weigh(const Tensor& values, const Tensor& weights, const MetricState& state) {
  Tensor x = values.detach().to(state.dtype());
  if (!weights.defined()) return {x, at::full({}, x.numel(), x.options())};
  x = without_inner_dims(x, weights, InnerDims::kMean);
  const Tensor w = broadcast_weights(weights.detach(), x, state.name().c_str()).expand_as(x);
  return {x * w, w.sum()};
}

void add_to_mean(MetricState& state, const Tensor& values, const Tensor& weights) {
  if (!weights.defined() && at::isFloatingType(state.dtype())) {
    if (const std::optional<double> sum = sum_if_small(values)) {
      return state.add_numbers({*sum, static_cast<double>(values.numel())});
    }
  }
  const NoGradient no_gradient;
  const Weighted weighted = weigh(values, weights, state);
  state.add({weighted.values.sum(), weighted.weight_sum});
}

}  // namespace internal

namespace keras::metrics {

const std::string& Metric::name() const { return state_->name(); }
MetricResult Metric::result() const { return MetricResult(state_->result()); }
double MetricResult::number() const {
  if (numel() != 1) {
    throw InvalidArgumentError(internal::str("a metric's result of shape ",
                                             internal::shape_str(sizes()),
                                             " was used as one number; take one of its elements"));
  }
  return item<double>();
}
std::ostream& operator<<(std::ostream& out, const MetricResult& result) {
  return out << Structure(result);
}
void Metric::reset_state() const { state_->reset(); }
void Metric::merge_state(const std::vector<Metric>& metrics) const {
  for (const Metric& metric : metrics) state_->merge(*metric.state_);
}
List<Variable> Metric::variables() const { return state_->variables(); }
std::shared_ptr<train::Trackable> Metric::trackable() const { return state_.pointer(); }

void Metric::part_from_others() { state_ = state_->another(); }

void Metric::describe(std::string_view class_name, const Config& config) const {
  state_->class_name = class_name;
  state_->config = config;
}

std::optional<Config> Metric::serialize() const {
  if (state_->class_name.empty()) return std::nullopt;
  Config config = state_->config;
  config.set("name", name()).set("dtype", internal::dtype_name(state_->dtype()));
  return internal::serialized("keras.metrics", state_->class_name, internal::json_of(config));
}

}  // namespace keras::metrics
}  // namespace cohort
