#include "cohort/keras/optimizers/optimizer_state.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "cohort/core/flush_denormals.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/context.h"
#include "cohort/distribute/gradient_packs.h"
#include "cohort/distribute/local_variable.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/variable_creation.h"
#include "cohort/keras/backend.h"
#include "cohort/ops/gradient_stream.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using distribute::ReplicaContext;
using keras::optimizers::ApplyOptions;
using keras::optimizers::GradientsAndVariables;

std::string list_names(const std::vector<Variable>& variables) {
  std::string names;
  for (const Variable& variable : variables) {
    names += str(names.empty() ? "" : ", ", "'", variable.name(), "'");
  }
  return names;
}

// Replicas that bring different lists would wait for each other's gradients for ever.
void check_same_variables(const distribute::PerReplica<const std::vector<Variable>*>& lists) {
  const std::vector<Variable>& first = *lists.value(0);
  for (size_t r = 1; r < lists.size(); ++r) {
    const std::vector<Variable>& other = *lists.value(r);
    if (other == first) continue;
    throw InvalidArgumentError(str("apply_gradients: replica 0 updates the variables [",
                                   list_names(first), "], replica ", r, " updates [",
                                   list_names(other), "]; they must be the same in one order"));
  }
}

// Errors: FailedPrecondition (in cross-replica context).
ReplicaContext& calling_replica() {
  ReplicaContext* replica = distribute::get_replica_context();
  if (replica != nullptr) return *replica;
  throw FailedPreconditionError(
      "apply_gradients was called in cross-replica context; call it in the function that "
      "strategy.run runs, where each replica brings its gradients (in a merge_call, return the "
      "gradients to the replicas instead, with .skip_gradients_aggregation if they are summed)");
}

// So much of the gradients is added up at a time: the caches of a core hold it for all replicas.
constexpr int64_t kBytesPerPack = 256 << 10;

}  // namespace

OptimizerState::OptimizerState(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
                               keras::optimizers::LearningRate learning_rate)
    : name_(std::move(name)),
      rule_(std::move(rule)),
      learning_rate_(learning_rate.value(), keras_floatx()),
      schedule_(learning_rate.schedule()),
      strategy_(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr),
      checkpoint_slots_(name_, *rule_) {}

OptimizerState::~OptimizerState() = default;

const Variable& OptimizerState::iterations() {
  if (iterations_once_.done()) return iterations_;
  std::optional<distribute::Scope> scope;
  if (strategy_ != nullptr && !distribute::has_strategy()) scope.emplace(strategy_);
  iterations_once_(str("optimizer '", name_, "'"), [&] {
    // Each replica counts for itself, so that counting needs no meeting: they count alike.
    if (!iterations_) {  // unless a restored value did not fit it the last time
      iterations_ =
          Variable(at::zeros({}, int64), {.name = name_ + "/iterations",
                                          .trainable = false,
                                          .synchronization = VariableSynchronization::ON_READ,
                                          .aggregation = VariableAggregation::ONLY_FIRST_REPLICA});
      checkpoint_slots_.add_iterations(iterations_.impl());
    }
    child_appeared("_iterations", iterations_.impl());
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

void OptimizerState::set_learning_rate(double learning_rate) {
  if (schedule_ != nullptr) {
    throw FailedPreconditionError(str("optimizer '", name_,
                                      "' follows a learning rate schedule, so the rate cannot be "
                                      "set; make it with a number"));
  }
  learning_rate_.set(learning_rate);
}

void OptimizerState::apply(const GradientsAndVariables& gradients, const ApplyOptions& options) {
  if (gradients.empty()) return;
  ReplicaContext& replica = calling_replica();
  const NoGradient no_gradient;
  const PlanPtr plan = plan_for(replica, gradients);
  c10::SmallVector<Tensor, 16> tensors;
  for (const auto& [gradient, variable] : gradients) tensors.push_back(gradient);
  update(replica, *plan, tensors, {.aggregate_gradients = !options.skip_gradients_aggregation});
}

void OptimizerState::minimize(const Tensor& loss, const std::vector<Variable>& variables,
                              GradientTape& tape) {
  if (variables.empty()) return;
  ReplicaContext& replica = calling_replica();
  GradientsAndVariables pairs;
  pairs.reserve(variables.size());
  for (const Variable& variable : variables) pairs.emplace_back(Tensor(), variable);
  const PlanPtr plan = [&] {
    const NoGradient no_gradient;
    return plan_for(replica, pairs);
  }();
  const std::vector<Tensor> gradients = plan->packs == nullptr
                                            ? tape.gradient(loss, variables)
                                            : backward_into_packs(replica, *plan, loss, tape);
  const NoGradient no_gradient;
  update(replica, *plan, gradients, {.packs = plan->packs.get()});
  if (plan->packs != nullptr) {
    plan->packs->forget(static_cast<size_t>(replica.local_replica_id()));
  }
}

std::vector<Tensor> OptimizerState::backward_into_packs(ReplicaContext& replica, Plan& plan,
                                                        const Tensor& loss, GradientTape& tape) {
  replica.merge("minimize", &plan, [&](distribute::Strategy&, std::span<void* const> plans) {
    for (size_t r = 0; r < plans.size(); ++r) {
      if (plans[r] == &plan) continue;
      throw InvalidArgumentError(str("minimize: replica ", r, " updates other variables than ",
                                     "another, whose first is '", plan.targets[0].variable.name(),
                                     "'; they must be the same in one order"));
    }
    plan.packs->begin();
  });
  const auto rank = static_cast<size_t>(replica.local_replica_id());
  std::unique_ptr<GradientStream>& stream = plan.streams[rank];
  if (stream == nullptr) {
    std::vector<Tensor> leaves;
    for (const UpdateTarget& target : plan.targets) leaves.push_back(target.variable.value());
    stream = std::make_unique<GradientStream>(std::move(leaves));
  }
  tape.stream(loss, *stream, [&](size_t i, const Tensor& gradient) {
    const NoGradient no_gradient;
    plan.packs->bring(
        rank, i,
        usable_gradient(gradient, plan.targets[i].variable, replica.replica_id_in_sync_group()));
  });
  plan.packs->reduce_complete();
  std::vector<Tensor> gradients;
  gradients.reserve(plan.targets.size());
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    gradients.push_back(plan.packs->gradient(rank, i));
  }
  return gradients;
}

OptimizerState::PlanPtr OptimizerState::plan_for(ReplicaContext& replica,
                                                 const GradientsAndVariables& gradients) {
  iterations();
  PlanPtr plan = find_plan(gradients);
  if (plan == nullptr) plan = agree_on_plan(replica, gradients);
  if (plan->core != &replica.core()) {
    throw FailedPreconditionError(str("apply_gradients: variable '", gradients[0].second.name(),
                                      "' was made under a ", plan->core->name(),
                                      ", but the step runs under ", replica.core().name(),
                                      "; run the step with the variable's strategy"));
  }
  return plan;
}

void OptimizerState::update(ReplicaContext& replica, const Plan& plan,
                            c10::ArrayRef<Tensor> gradients, UpdateOptions options) {
  const auto is_defined = [](const Tensor& gradient) { return gradient.defined(); };
  if (std::none_of(gradients.begin(), gradients.end(), is_defined)) {
    throw InvalidArgumentError(str("no gradients for any of the variables, the first of which is '",
                                   plan.targets[0].variable.name(),
                                   "'; does the loss depend on them, inside of the tape?"));
  }
  const bool all = std::all_of(gradients.begin(), gradients.end(), is_defined);
  if (!all && !warned_.exchange(true)) warn_of_missing(plan, gradients);

  const ScopedFlushDenormals flush_denormals;  // the default strategy needs no run
  options.iteration = iterations().value().item<int64_t>();
  options.learning_rate = learning_rate_at(options.iteration);
  reduce_and_update(replica, {gradients.data(), gradients.size()}, plan.targets, *rule_, options);
  count_update(replica);
}

void OptimizerState::count_update(const ReplicaContext& replica) {
  const LocalVariable& impl = iterations().impl().local();
  const auto own = static_cast<size_t>(replica.local_replica_id());
  // Made under another strategy, it has no component of this replica's own.
  if (impl.core().get() != &replica.core() || !impl.component(own).is_cpu()) {
    return iterations().assign_add(1.0);
  }
  ++*impl.component(own).data_ptr<int64_t>();
  impl.mark_written(own);
}

void OptimizerState::warn_of_missing(const Plan& plan, c10::ArrayRef<Tensor> gradients) {
  std::vector<Variable> missing;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) missing.push_back(plan.targets[i].variable);
  }
  log_warning("gradients do not exist for the variables ", list_names(missing),
              "; they keep their values unless another replica has one");
}

OptimizerState::PlanPtr OptimizerState::find_plan(const GradientsAndVariables& gradients) const {
  const auto matches = [&](const PlanPtr& plan) {
    if (plan->targets.size() != gradients.size()) return false;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!(plan->targets[i].variable == gradients[i].second)) return false;
    }
    return true;
  };
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(plans_.begin(), plans_.end(), matches);
  return found == plans_.end() ? nullptr : *found;
}

OptimizerState::PlanPtr OptimizerState::agree_on_plan(ReplicaContext& replica,
                                                      const GradientsAndVariables& gradients) {
  std::vector<Variable> variables;
  for (const auto& [gradient, variable] : gradients) variables.push_back(variable);
  const std::vector<Variable>* mine = &variables;
  return replica.merge_call(
      [this](distribute::Strategy&,
             const distribute::PerReplica<const std::vector<Variable>*>& lists) {
        check_same_variables(lists);
        return make_plan(*lists.value(0));
      },
      mine);
}

OptimizerState::PlanPtr OptimizerState::make_plan(const std::vector<Variable>& variables) {
  auto plan = std::make_shared<Plan>();
  plan->core = variables[0].impl().core().get();
  std::unordered_set<const VariableImpl*> seen;
  for (const Variable& variable : variables) {
    if (variable.impl().core().get() != &*distribute::get_strategy().core()) {
      throw FailedPreconditionError(
          str("optimizer '", name_, "': variable '", variable.name(), "' was made under a ",
              variable.impl().core()->name(), ", but the current strategy is a ",
              distribute::get_strategy().core()->name(),
              "; make the model under strategy.scope() of the strategy that runs the step"));
    }
    if (!seen.insert(&variable.impl()).second) {
      throw InvalidArgumentError(
          str("optimizer '", name_, "': variable '", variable.name(), "' is listed twice"));
    }
  }
  for (const Variable& variable : variables) {
    if (variable.dtype() == float32 || variable.dtype() == float64) continue;
    throw InvalidArgumentError(str("optimizer '", name_, "': variable '", variable.name(), "' is ",
                                   dtype_name(variable.dtype()),
                                   "; rules update float32 and float64 variables"));
  }
  std::lock_guard lock(mutex_);
  std::vector<UpdateTarget> made;
  const auto is_new = [&](const Variable& variable) { return find_target(variable) == nullptr; };
  const auto num_new =
      static_cast<size_t>(std::count_if(variables.begin(), variables.end(), is_new));
  for (const Variable& variable : variables) {
    const UpdateTarget* found = find_target(variable);
    plan->targets.push_back(
        found != nullptr ? *found : made.emplace_back(make_target(variable, made.size(), num_new)));
  }
  // Where restored values do not fit, the slots are given up: a step that is tried again meets the
  // same error, and does not train without them.
  checkpoint_slots_.add(made);
  targets_.insert(targets_.end(), made.begin(), made.end());
  const auto replicas = static_cast<size_t>(plan->core->num_local_replicas());
  if (replicas > 1) {
    plan->packs = std::make_unique<GradientPacks>(variables, replicas, kBytesPerPack);
    plan->streams.resize(replicas);
  }
  plans_.push_back(plan);
  return plan;
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
  UpdateTarget target{variable, {}};
  for (const optim::SlotSpec& slot : rule_->slots()) {
    const distribute::VariableSpec spec{
        .shape = variable.shape(),
        .dtype = variable.dtype(),
        .options = {.name = str(name_, "/", slot.name, "/", variable.name()), .trainable = false}};
    const auto fill = [value = slot.initial_value,
                       dtype = spec.dtype](const distribute::ShardInfo& shard) {
      return at::full(shard.shape, value, dtype);
    };
    const auto pending = checkpoint_slots_.pending_value(
        {.target = index, .num_targets = num_new, .slot = target.slots.size()}, spec.shape,
        spec.dtype);
    target.slots.emplace_back(create_variable(spec, {fill, [] {}}, pending));
  }
  return target;
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
  GradientsAndVariables pairs;
  for (const Variable& variable : variables) pairs.emplace_back(Tensor(), variable);
  if (find_plan(pairs) == nullptr) make_plan(variables);
}

std::vector<Variable> OptimizerState::variables() {
  std::vector<Variable> all{iterations()};
  std::lock_guard lock(mutex_);
  for (const UpdateTarget& target : targets_) {
    all.insert(all.end(), target.slots.begin(), target.slots.end());
  }
  return all;
}

std::vector<train::TrackableChild> OptimizerState::checkpoint_children() {
  VariableImpl& iterations = this->iterations().impl();
  std::vector<train::TrackableChild> children = {{"_variables", &checkpoint_slots_.variables()},
                                                 {"_iterations", &iterations}};
  if (schedule_ == nullptr) {
    children.push_back({"_learning_rate", &learning_rate_});
  } else {
    children.push_back({"_current_learning_rate", &scheduled_learning_rate_});
  }
  for (train::TrackableChild& list : checkpoint_slots_.lists()) children.push_back(std::move(list));
  return children;
}

}  // namespace cohort::internal
