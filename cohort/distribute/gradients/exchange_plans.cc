#include "cohort/distribute/gradients/exchange_plans.h"

#include <algorithm>
#include <unordered_set>

#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

using distribute::Variable;

std::string list_names(const std::vector<Variable>& variables) {
  std::string names;
  for (const Variable& variable : variables) {
    names += str(names.empty() ? "" : ", ", "'", variable.name(), "'");
  }
  return names;
}

namespace {

// If replicas had different lists, they would wait for each other's gradients for ever.
void check_same_variables(const Replica& replica,
                          const std::vector<const std::vector<Variable>*>& lists) {
  const int first_id = replica.replica_id_in_sync_group() - replica.local_replica_id();
  const std::vector<Variable>& first = *lists[0];
  for (size_t r = 1; r < lists.size(); ++r) {
    const std::vector<Variable>& other = *lists[r];
    if (other == first) continue;
    throw InvalidArgumentError(str("apply_gradients: replica ", first_id,
                                   " updates the variables [", list_names(first), "], replica ",
                                   first_id + static_cast<int>(r), " updates [", list_names(other),
                                   "]; they must be the same in one order"));
  }
}

}  // namespace

std::vector<Variable> VariableList::copy() const {
  std::vector<Variable> variables;
  variables.reserve(size);
  for (size_t i = 0; i < size; ++i) variables.push_back(at(i));
  return variables;
}

std::shared_ptr<GradientExchange> ExchangePlans::of(Replica& replica, const VariableList& variables,
                                                    MakeTargets make_targets) {
  auto exchange = find(variables);
  if (exchange == nullptr) exchange = agree(replica, variables, make_targets);
  const StrategyCore* core = variables.at(0).impl().core().get();
  if (core != &replica.core()) {
    throw FailedPreconditionError(str("apply_gradients: variable '", variables.at(0).name(),
                                      "' was made under a ", core->name(),
                                      ", but the step runs under ", replica.core().name(),
                                      "; run the step with the variable's strategy"));
  }
  return exchange;
}

void ExchangePlans::make(const VariableList& variables, MakeTargets make_targets) {
  if (find(variables) == nullptr) make(variables.copy(), make_targets);
}

std::shared_ptr<GradientExchange> ExchangePlans::find(const VariableList& variables) const {
  const auto matches = [&](const Plan& plan) {
    const std::vector<UpdateTarget>& targets = plan.exchange->targets();
    if (targets.size() != variables.size) return false;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!(targets[i].variable == variables.at(i))) return false;
    }
    return plan.generation == plan.core->group().view()->generation;
  };
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(plans_.begin(), plans_.end(), matches);
  return found == plans_.end() ? nullptr : found->exchange;
}

std::shared_ptr<GradientExchange> ExchangePlans::agree(Replica& replica,
                                                       const VariableList& variables,
                                                       MakeTargets make_targets) {
  struct Frame {
    const std::vector<Variable> variables;
    std::shared_ptr<GradientExchange> exchange;
  } mine{variables.copy(), nullptr};
  replica.merge("the variables of apply_gradients", &mine, [&](std::span<void* const> all) {
    std::vector<const std::vector<Variable>*> lists;
    for (void* one : all) lists.push_back(&static_cast<Frame*>(one)->variables);
    check_same_variables(replica, lists);
    const std::shared_ptr<GradientExchange> exchange = make(*lists[0], make_targets);
    for (void* one : all) static_cast<Frame*>(one)->exchange = exchange;
  });
  return mine.exchange;
}

std::shared_ptr<GradientExchange> ExchangePlans::make(const std::vector<Variable>& variables,
                                                      MakeTargets make_targets) {
  check(variables);
  StrategyCore* core = variables[0].impl().core().get();
  std::shared_ptr<GradientExchange> exchange = core->make_exchange(make_targets(variables));
  const int64_t generation = core->group().view()->generation;
  std::lock_guard lock(mutex_);
  std::erase_if(plans_, [&](const Plan& plan) {  // of a group that has formed again
    return plan.core == core && plan.generation != generation;
  });
  plans_.push_back({core, generation, exchange});
  return exchange;
}

void ExchangePlans::check(const std::vector<Variable>& variables) const {
  std::unordered_set<const VariableImpl*> seen;
  const auto current = current_core();
  for (const Variable& variable : variables) {
    if (variable.impl().core() != current) {
      throw FailedPreconditionError(
          str(owner_, ": variable '", variable.name(), "' was made under a ",
              variable.impl().core()->name(), ", but the current strategy is a ", current->name(),
              "; make the model under strategy.scope() of the strategy that runs the step"));
    }
    if (!seen.insert(&variable.impl()).second) {
      throw InvalidArgumentError(str(owner_, ": variable '", variable.name(), "' is listed twice"));
    }
  }
  for (const Variable& variable : variables) {
    if (variable.dtype() == float32 || variable.dtype() == float64) continue;
    throw InvalidArgumentError(str(owner_, ": variable '", variable.name(), "' is ",
                                   dtype_name(variable.dtype()),
                                   "; rules update float32 and float64 variables"));
  }
}

}  // namespace cohort::internal
