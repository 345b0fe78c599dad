#include "cohort/keras/optimizers/optimizer_state.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/optimizers/loss_scale.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/optim/transformed.h"

namespace cohort::internal {
namespace {

using distribute::ReplicaContext;
using keras::optimizers::ApplyOptions;
using keras::optimizers::CommonOptions;
using keras::optimizers::GradientsAndVariables;
using keras::optimizers::NotFinite;

// Errors: FailedPrecondition (in cross-replica context).
ReplicaContext& calling_replica() {
  ReplicaContext* replica = distribute::get_replica_context();
  if (replica != nullptr) return *replica;
  throw FailedPreconditionError(
      "apply_gradients was called in cross-replica context; call it in the function that "
      "strategy.run runs, where each replica brings its gradients (in a merge_call, return the "
      "gradients to the replicas instead, with .skip_gradients_aggregation if they are summed)");
}

// Errors: InvalidArgument (names the option and its value).
std::unique_ptr<const optim::UpdateRule> with_transforms(
    std::unique_ptr<const optim::UpdateRule> rule, const CommonOptions& options) {
  int clips = 0;
  for (const auto& [option, value] :
       {std::pair("clipnorm", options.clipnorm), std::pair("clipvalue", options.clipvalue),
        std::pair("global_clipnorm", options.global_clipnorm)}) {
    clips += value > 0 ? 1 : 0;
    if (value >= 0 && std::isfinite(value)) continue;
    throw InvalidArgumentError(str(option, " must be a finite number not below 0, but is ", value));
  }
  if (clips > 1) {
    throw InvalidArgumentError(
        str("at most one of clipnorm, clipvalue and global_clipnorm may be "
            "above 0, but they are ",
            options.clipnorm, ", ", options.clipvalue, " and ", options.global_clipnorm));
  }
  if (options.gradient_accumulation_steps < 1) {
    throw InvalidArgumentError(str("gradient_accumulation_steps must be 1 or more, but is ",
                                   options.gradient_accumulation_steps));
  }
  optim::TransformOptions transforms{.clipvalue = options.clipvalue,
                                     .weight_decay = options.weight_decay,
                                     .ema_overwrite_frequency = options.ema_overwrite_frequency};
  if (options.use_ema) transforms.ema_momentum = options.ema_momentum;
  return optim::make_transformed(std::move(rule), transforms);
}

// What a checkpoint calls the parts of an optimizer that every class has.
constexpr const char* kEverySlot = "_variables";
constexpr const char* kUpdateCount = "_iterations";
constexpr const char* kFixedRate = "_learning_rate";
constexpr const char* kScheduledRate = "_current_learning_rate";
constexpr const char* kAccumulatedSums = "_gradient_accumulator";
constexpr const char* kPlaces = "_index_dict";    // Keras's own: of variables in its lists
constexpr const char* kLossScale = "loss_scale";  // where a LossScaleOptimizer was saved

bool is_of_every_optimizer(std::string_view name) {
  return name == kEverySlot || name == kUpdateCount || name == kFixedRate ||
         name == kScheduledRate || name == kAccumulatedSums || name == kPlaces ||
         name == kLossScale;
}

using Names = std::set<std::string, std::less<>>;

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ", ", name);
  return text.empty() ? "nothing" : text;
}

void assign_average(const Variable& variable, const Variable& average) {
  const NoGradient no_gradient;
  variable.assign(average.value().detach());
}

}  // namespace

OptimizerState::OptimizerState(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
                               keras::optimizers::LearningRate learning_rate,
                               const CommonOptions& options)
    : name_(std::move(name)),
      rule_(with_transforms(std::move(rule), options)),
      rule_without_decay_(optim::without_weight_decay(*rule_)),
      learning_rate_(learning_rate.value(), keras_floatx()),
      schedule_(learning_rate.schedule()),
      options_(options),
      strategy_(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr),
      plans_(str("optimizer '", name_, "'")),
      checkpoint_slots_(name_, *rule_) {
  if (strategy_ != nullptr && strategy_->steps_run_elsewhere()) {
    iterations();
    // Workers skip by themselves, each its own updates.
    if (options.not_finite == NotFinite::SKIP) {
      skipped_by_all_ = create_own_variable(
          at::zeros({}, int64), {.name = name_ + "/skipped_updates",
                                 .trainable = false,
                                 .synchronization = VariableSynchronization::ON_READ,
                                 .aggregation = VariableAggregation::ONLY_FIRST_REPLICA});
    }
  }
  if (options.gradient_accumulation_steps > 1) {
    accumulator_ =
        std::make_unique<GradientAccumulator>(name_, options.gradient_accumulation_steps);
  }
  const std::vector<optim::DerivedScalar> derived = rule_->derived_scalars(0);
  for (size_t i = 0; i < derived.size(); ++i) {
    derived_numbers_.emplace_back(
        derived[i].name,
        std::make_unique<DerivedNumber>(derived[i].name, keras_floatx(), [this, i] {
          return rule_->derived_scalars(iterations().value().item<int64_t>())[i].value;
        }));
  }
}

OptimizerState::~OptimizerState() = default;

const Variable& OptimizerState::iterations() {
  if (iterations_once_.done()) return iterations_;
  std::optional<distribute::Scope> scope;
  if (strategy_ != nullptr && !distribute::has_strategy()) scope.emplace(strategy_);
  iterations_once_(str("optimizer '", name_, "'"), [&] {
    // Each replica counts for itself, so that counting needs no barrier: they count alike.
    if (!iterations_) {  // unless a restored value did not fit it the last time
      iterations_ =
          create_own_variable({.shape = {},
                               .dtype = int64,
                               .options = {.name = name_ + "/iterations",
                                           .trainable = false,
                                           .synchronization = VariableSynchronization::ON_READ,
                                           .aggregation = VariableAggregation::ONLY_FIRST_REPLICA},
                               .in_host_memory = true},
                              [](const distribute::ShardInfo&) { return at::zeros({}, int64); });
      checkpoint_slots_.add_iterations(iterations_.impl());
    }
    if (schedule_ == nullptr && iterations_.impl().core()->steps_run_elsewhere()) {
      learning_rate_.share(name_ + "/learning_rate", iterations_);
    }
    child_appeared(kUpdateCount, iterations_.impl());
  });
  return iterations_;
}

double OptimizerState::learning_rate_at(int64_t iteration) const {
  return schedule_ == nullptr ? learning_rate_.get() : schedule_->at(iteration);
}

double OptimizerState::learning_rate() {
  if (schedule_ == nullptr) return learning_rate_.get();
  return learning_rate_at(iterations().value().item<int64_t>());
}

void OptimizerState::check_rate_can_be_set() const {
  if (schedule_ == nullptr) return;
  throw FailedPreconditionError(str("optimizer '", name_,
                                    "' follows a learning rate schedule, so the rate cannot be "
                                    "set; make it with a number"));
}

void OptimizerState::set_learning_rate(double learning_rate) {
  check_rate_can_be_set();
  learning_rate_.set(learning_rate);
}

void OptimizerState::apply(const GradientsAndVariables& gradients, const ApplyOptions& options,
                           const GradientScaling& scaling) {
  if (gradients.empty()) return;
  ReplicaContext& replica = calling_replica();
  const NoGradient no_gradient;
  iterations();
  const auto exchange = plans_.of(
      replica, {gradients.size(), [&](size_t i) -> const Variable& { return gradients[i].second; }},
      [this](const std::vector<Variable>& variables) { return make_targets(variables); });
  std::vector<Tensor> means;
  if (accumulator_ != nullptr) {
    if (StepRecording* const recording = StepRecording::current()) {
      recording->refuse(str("optimizer '", name_, "' updates variables in some steps only ",
                            "(gradient_accumulation_steps is ",
                            options_.gradient_accumulation_steps, ")"));
    }
    if (!accumulator_->update_is_due(replica, gradients)) return;
    means = accumulator_->means(replica, gradients);
  }
  exchange->begin(replica, Arrival::kAtOnce);
  for (size_t i = 0; i < gradients.size(); ++i) {
    exchange->bring(replica, i, means.empty() ? gradients[i].first : means[i]);
  }
  const bool updated = update(replica, *exchange, !options.skip_gradients_aggregation, scaling);
  if (accumulator_ != nullptr) accumulator_->clear(replica, gradients);
  if (!updated) skip(replica, scaling);
}

void OptimizerState::minimize(const Tensor& loss, const std::vector<Variable>& variables,
                              GradientTape& tape, const GradientScaling& scaling) {
  if (variables.empty()) return;
  if (accumulator_ != nullptr) {  // most calls exchange nothing, so that nothing could overlap
    return apply(zip(tape.gradient(loss, variables), variables), {}, scaling);
  }
  ReplicaContext& replica = calling_replica();
  const auto exchange = [&] {
    const NoGradient no_gradient;
    iterations();
    return plans_.of(replica,
                     {variables.size(), [&](size_t i) -> const Variable& { return variables[i]; }},
                     [this](const std::vector<Variable>& all) { return make_targets(all); });
  }();
  exchange->backward(replica, loss, tape);
  const NoGradient no_gradient;
  if (!update(replica, *exchange, /*aggregate_gradients=*/true, scaling)) skip(replica, scaling);
}

bool OptimizerState::update(ReplicaContext& replica, GradientExchange& exchange,
                            bool aggregate_gradients, const GradientScaling& scaling) {
  check_brought(replica, exchange);
  const ScopedFlushDenormals flush_denormals;  // the default strategy needs no run
  const int64_t iteration = iterations().value().item<int64_t>();
  UpdateStep step{
      .rule = *rule_,
      .rule_without_decay = rule_without_decay_.get(),
      .learning_rate = learning_rate_at(iteration),
      .rate_is_scheduled = schedule_ != nullptr,
      .iteration = iteration,
      .aggregate_gradients = aggregate_gradients,
      .factor = scaling.factor,
      .clipnorm = options_.clipnorm,
      .global_clipnorm = options_.global_clipnorm,
      .skip_not_finite = options_.not_finite != NotFinite::ALLOW || scaling.loss_scale != nullptr};
  prepare_recording(step);
  const UpdateResult result = exchange.finish(replica, step);
  if (result.updated || scaling.loss_scale != nullptr) count_update(replica);
  if (scaling.loss_scale != nullptr) scaling.loss_scale->update(replica, result.updated);
  return result.updated;
}

void OptimizerState::prepare_recording(UpdateStep& step) {
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) return;
  if (step.skip_not_finite) {
    recording->refuse(str("optimizer '", name_, "' skips updates that are not finite, so that the ",
                          "host waits for the gradients (not_finite, or a dynamic loss scale)"));
  }
  recording->keep(shared_from_this());
  step.scalars_of_replay = [this] {
    const int64_t iteration = iterations().value().item<int64_t>();
    return rule_->prepare(learning_rate_at(iteration), iteration);
  };
}

void OptimizerState::skip(const ReplicaContext& replica, const GradientScaling& scaling) {
  const bool is_first = replica.local_replica_id() == 0;
  if (is_first) ++skipped_;
  if (scaling.loss_scale != nullptr) return;  // which looks for its limit in this way
  const std::string what =
      str("optimizer '", name_, "': the gradients after ", iterations().value().item<int64_t>(),
          " updates are not finite (NaN or infinity in one replica or more); "
          "no variable was changed");
  if (options_.not_finite == NotFinite::RAISE) throw InvalidArgumentError(what);
  if (skipped_by_all_) skipped_by_all_.assign_add(1);
  if (is_first && skipped_ == 1) {
    log_warning(what, "; further ones are counted by skipped_updates()");
  }
}

void OptimizerState::count_update(const ReplicaContext& replica) {
  if (!iterations().impl().is_local()) {
    iterations().assign_add(1);
    return;
  }
  const LocalVariable& impl = iterations().impl().local();
  const auto own = static_cast<size_t>(replica.local_replica_id());
  // Made under another strategy, it has no component of this replica's own.
  if (impl.core().get() != &replica.core() || !impl.component(own).is_cpu()) {
    iterations().assign_add(1);
    return;
  }
  const auto count = [counted = iterations_, own] {
    const LocalVariable& variable = counted.impl().local();
    ++*variable.component(own).data_ptr<int64_t>();
    variable.mark_written(own);
  };
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) return count();
  recording->each_time(count);
}

void OptimizerState::check_brought(const ReplicaContext& replica,
                                   const GradientExchange& exchange) {
  const std::vector<UpdateTarget>& targets = exchange.targets();
  size_t brought = 0;
  for (size_t i = 0; i < targets.size(); ++i) brought += exchange.has(replica, i) ? 1 : 0;
  if (brought == targets.size()) return;
  if (brought == 0) {
    throw InvalidArgumentError(str("no gradients for any of the variables, the first of which is '",
                                   targets[0].variable.name(),
                                   "'; does the loss depend on them, inside of the tape?"));
  }
  if (warned_.exchange(true)) return;
  std::vector<Variable> missing;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!exchange.has(replica, i)) missing.push_back(targets[i].variable);
  }
  log_warning("gradients do not exist for the variables ", list_names(missing),
              "; they keep their values unless another replica has one");
}

std::vector<UpdateTarget> OptimizerState::make_targets(const std::vector<Variable>& variables) {
  std::lock_guard lock(mutex_);
  std::vector<UpdateTarget> targets, made;
  const auto is_new = [&](const Variable& variable) { return find_target(variable) == nullptr; };
  const auto num_new =
      static_cast<size_t>(std::count_if(variables.begin(), variables.end(), is_new));
  for (const Variable& variable : variables) {
    const UpdateTarget* found = find_target(variable);
    targets.push_back(
        found != nullptr ? *found : made.emplace_back(make_target(variable, made.size(), num_new)));
  }
  if (accumulator_ != nullptr) accumulator_->make(made);
  // Slots are given up where restored values do not fit them: a step that is tried again gets the
  // same error, and does not train without them.
  checkpoint_slots_.add(made);
  targets_.insert(targets_.end(), made.begin(), made.end());
  return targets;
}

// Called with mutex_ held.
const UpdateTarget* OptimizerState::find_target(const Variable& variable) const {
  for (const UpdateTarget& target : targets_) {
    if (target.variable == variable) return &target;
  }
  return nullptr;
}

UpdateTarget OptimizerState::make_target(const Variable& variable, size_t index,
                                         size_t num_new) const {
  UpdateTarget target{variable, {}, !excluded_.contains(variable)};
  const ScopedColocation beside(variable.impl());
  for (const optim::SlotSpec& slot : rule_->slots()) {
    const distribute::VariableSpec spec{
        .shape = optim::slot_shape(slot.form, variable.shape()),
        .dtype = variable.dtype(),
        .options = {.name = str(name_, "/", slot.name, "/", variable.name()), .trainable = false}};
    const auto fill = [&](const distribute::ShardInfo& shard) {
      if (slot.starts_as_variable) return shard.of(variable.value().detach()).clone();
      return at::full(shard.shape, slot.initial_value, spec.dtype);
    };
    const auto describe = [&]() -> std::optional<distribute::KnownValues> {
      if (slot.starts_as_variable) return std::nullopt;
      return distribute::KnownValues{.first = slot.initial_value};
    };
    const auto pending = checkpoint_slots_.pending_value(
        {.target = index, .num_targets = num_new, .slot = target.slots.size()}, spec.shape,
        spec.dtype);
    target.slots.push_back(create_own_variable(spec, {fill, [] {}, describe}, pending));
  }
  return target;
}

void OptimizerState::exclude_from_weight_decay(const std::vector<Variable>& variables,
                                               const std::vector<std::string>& names) {
  std::lock_guard lock(mutex_);
  if (!targets_.empty()) {
    throw FailedPreconditionError(str("optimizer '", name_,
                                      "' has been built; call exclude_from_weight_decay before "
                                      "build and the first step"));
  }
  excluded_.set(variables, names);
}

void OptimizerState::build(const std::vector<Variable>& variables) {
  if (variables.empty()) return;
  if (distribute::has_strategy() && !distribute::in_cross_replica_context()) {
    throw FailedPreconditionError(str("optimizer '", name_,
                                      "': build was called in a step; call it under "
                                      "strategy.scope(), or leave it to apply_gradients"));
  }
  const std::shared_ptr<StrategyCore>& core = variables[0].impl().core();
  std::optional<distribute::Scope> scope;
  if (!distribute::has_strategy() && !core->is_default()) scope.emplace(core);
  iterations();
  plans_.make({variables.size(), [&](size_t i) -> const Variable& { return variables[i]; }},
              [this](const std::vector<Variable>& all) { return make_targets(all); });
}

void OptimizerState::finalize_variable_values(const std::vector<Variable>& variables) {
  if (!options_.use_ema) {
    throw FailedPreconditionError(
        str("optimizer '", name_, "' keeps no moving averages; make it with use_ema"));
  }
  if (distribute::has_strategy() && !distribute::in_cross_replica_context()) {
    throw FailedPreconditionError(str("optimizer '", name_,
                                      "': finalize_variable_values was called in a step; call it "
                                      "between steps"));
  }
  for (const Variable& variable : variables) {
    const Variable average = average_of(variable);
    if (!average) {
      throw NotFoundError(str("optimizer '", name_, "' has no moving average of variable '",
                              variable.name(), "': it has never updated it"));
    }
    assign_average(variable, average);
  }
}

void OptimizerState::finish_fit(const std::vector<Variable>& variables) {
  if (!options_.use_ema) return;
  for (const Variable& variable : variables) {
    if (const Variable average = average_of(variable)) assign_average(variable, average);
  }
}

Variable OptimizerState::average_of(const Variable& variable) {
  std::lock_guard lock(mutex_);
  const UpdateTarget* target = find_target(variable);
  return target == nullptr ? Variable() : target->slots.back();  // where make_transformed puts it
}

std::vector<Variable> OptimizerState::variables() {
  std::vector<Variable> all{iterations()};
  std::lock_guard lock(mutex_);
  for (const UpdateTarget& target : targets_) append_used_slots(target, *rule_, all);
  return all;
}

void OptimizerState::check_saved(const std::vector<SavedChild>& children) const {
  Names lists;
  Names own_lists;  // that have slots
  for (const auto& [name, has_slots] : checkpoint_slots_.list_names()) {
    lists.insert(name);
    if (has_slots) own_lists.insert(name);
  }
  Names own = lists;
  for (const auto& [name, number] : derived_numbers_) own.insert(name);
  bool is_keras = false;
  Names saved;
  Names saved_lists;
  for (const SavedChild& child : children) {
    is_keras = is_keras || child.name == kEverySlot;
    if (is_of_every_optimizer(child.name)) continue;
    saved.emplace(child.name);
    if (!child.is_empty && lists.contains(child.name)) saved_lists.emplace(child.name);
  }
  // Before its first step one of Keras's has no lists, and others have no slots in them.
  const bool is_same = saved == own && (saved_lists.empty() || saved_lists == own_lists);
  if (!is_keras || saved.empty() || is_same) return;
  const bool are_lists = saved == own;
  throw InvalidArgumentError(str("optimizer ", quoted(name_), " keeps ",
                                 listed(are_lists ? own_lists : own), ", that of the checkpoint ",
                                 listed(are_lists ? saved_lists : saved),
                                 ": it is of another class, or was made with other options"));
}

std::vector<train::TrackableChild> OptimizerState::checkpoint_children() {
  VariableImpl& iterations = this->iterations().impl();
  std::vector<train::TrackableChild> children = {{kEverySlot, &checkpoint_slots_.variables()},
                                                 {kUpdateCount, &iterations}};
  if (schedule_ == nullptr) {
    children.push_back({kFixedRate, &learning_rate_});
  } else {
    children.push_back({kScheduledRate, &scheduled_learning_rate_});
  }
  for (train::TrackableChild& list : checkpoint_slots_.lists()) children.push_back(std::move(list));
  // Keras makes them with the slots, so that a checkpoint before the first step has none.
  for (const auto& [name, number] : derived_numbers_) {
    children.push_back({name, number.get(), /*may_be_missing=*/true});
  }
  if (accumulator_ != nullptr) {
    children.push_back({kAccumulatedSums, accumulator_.get()});
  }
  return children;
}

}  // namespace cohort::internal
