#include "cohort/distribute/strategies/exponential_moving_average.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/gradients/exchange_plans.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

using Options = train::ExponentialMovingAverageOptions;

// Thread safety: as ExponentialMovingAverage.
class MovingAverages final : public train::Trackable {
 public:
  MovingAverages(train::NumberOrVariable decay, Options options)
      : decay_(std::move(decay)), options_(std::move(options)) {}

  const std::string& name() const { return options_.name; }
  void apply(const std::vector<Variable>& variables);
  std::optional<Variable> average(const Variable& variable) const;
  void swap(const std::vector<Variable>& variables) const;
  std::vector<Variable> all() const;

  std::vector<train::TrackableChild> checkpoint_children() override {
    return {{"averages", &list_}};
  }

 private:
  struct Entry {
    Variable variable;
    Variable average;
  };

  // What an average loses of its distance to its variable, in TensorFlow's float32.
  double gain() const;
  // Across replicas.
  void update(const std::vector<Variable>& variables);
  Variable find_or_make(const Variable& variable);

  const train::NumberOrVariable decay_;
  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
  train::TrackableList list_;
};

namespace {

void check_can_average(const Variable& variable) {
  if (at::isFloatingType(variable.dtype())) return;
  throw InvalidArgumentError(str("ExponentialMovingAverage: variable '", variable.name(), "' is ",
                                 dtype_name(variable.dtype()),
                                 "; variables must be bfloat16, float16, float32 or float64"));
}

}  // namespace

double MovingAverages::gain() const {
  auto decay = static_cast<float>(decay_.value());
  if (options_.num_updates) {
    const auto updates = static_cast<float>(options_.num_updates->value());
    decay = std::min(decay, (1 + updates) / (10 + updates));
  }
  if (!std::isfinite(decay)) {
    throw InvalidArgumentError(str(name(), ": the decay is ", decay, "; it must be a number"));
  }
  return 1 - decay;
}

void MovingAverages::apply(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) check_can_average(variable);
  const NoGradient no_gradient;
  distribute::ReplicaContext* const replica = distribute::get_replica_context();
  if (replica == nullptr || !distribute::has_strategy()) return update(variables);
  const std::vector<Variable>* mine = &variables;
  replica->merge("ExponentialMovingAverage::apply", &mine, [&](std::span<void* const> all) {
    for (size_t r = 1; r < all.size(); ++r) {
      const auto& other = **static_cast<const std::vector<Variable>**>(all[r]);
      const auto& first = **static_cast<const std::vector<Variable>**>(all[0]);
      if (other == first) continue;
      throw InvalidArgumentError(str(name(), ": local replica 0 averages the variables [",
                                     list_names(first), "], replica ", r, " averages [",
                                     list_names(other), "]; they must be the same in one order"));
    }
    update(variables);
  });
}

void MovingAverages::update(const std::vector<Variable>& variables) {
  const double gain = this->gain();
  for (const Variable& variable : variables) {
    const std::vector<Variable> averages = find_or_make(variable).shards();
    const std::vector<Variable> values = variable.shards();
    for (size_t i = 0; i < values.size(); ++i) {
      averages[i].assign_sub((averages[i].value() - values[i].value()) * gain);
    }
  }
}

Variable MovingAverages::find_or_make(const Variable& variable) {
  if (const std::optional<Variable> known = average(variable)) return *known;
  const std::shared_ptr<StrategyCore>& core = variable.impl().core();
  std::optional<distribute::Scope> scope;
  if (!distribute::has_strategy() && !core->is_default()) scope.emplace(core);
  const ScopedColocation beside(variable.impl());
  const distribute::VariableSpec spec{
      .shape = variable.shape(),
      .dtype = variable.dtype(),
      .options = {.name = str(variable.name(), "/", name()), .trainable = false}};
  const Variable made = create_own_variable(spec, {[&](const distribute::ShardInfo& shard) {
                                              return shard.of(variable.value().detach()).clone();
                                            }});
  list_.add(made.impl(), made.impl_ptr());
  const std::lock_guard lock(mutex_);
  entries_.push_back({variable, made});
  return made;
}

std::optional<Variable> MovingAverages::average(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.variable == variable; });
  if (found == entries_.end()) return std::nullopt;
  return found->average;
}

void MovingAverages::swap(const std::vector<Variable>& variables) const {
  if (distribute::has_strategy() && !distribute::in_cross_replica_context()) {
    throw FailedPreconditionError(
        str(name(), ": swap_weights was called in a step; call it between steps"));
  }
  const NoGradient no_gradient;
  std::vector<Variable> averages;
  for (const Variable& variable : variables) {
    const std::optional<Variable> found = average(variable);
    if (!found) {
      throw NotFoundError(
          str(name(), ": variable '", variable.name(), "' has no moving average; apply makes it"));
    }
    averages.push_back(*found);
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    const std::vector<Variable> own = variables[v].shards(), other = averages[v].shards();
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor value = own[i].value().detach().clone();
      own[i].assign(other[i].value().detach());
      other[i].assign(value);
    }
  }
}

std::vector<Variable> MovingAverages::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Variable> averages;
  for (const Entry& entry : entries_) averages.push_back(entry.average);
  return averages;
}

}  // namespace cohort::internal

namespace cohort::train {

double NumberOrVariable::value() const {
  return variable_ ? variable_.value().item<double>() : number_;
}

ExponentialMovingAverage::ExponentialMovingAverage(NumberOrVariable decay, const Options& options)
    : averages_(std::make_shared<internal::MovingAverages>(std::move(decay), options)) {}

void ExponentialMovingAverage::apply(const std::vector<Variable>& var_list) const {
  averages_->apply(var_list);
}
std::optional<Variable> ExponentialMovingAverage::average(const Variable& variable) const {
  return averages_->average(variable);
}
std::string ExponentialMovingAverage::average_name(const Variable& variable) const {
  const std::optional<Variable> found = average(variable);
  return found ? found->name() : internal::str(variable.name(), "/", name());
}
void ExponentialMovingAverage::swap_weights(const std::vector<Variable>& var_list) const {
  averages_->swap(var_list);
}
std::vector<Variable> ExponentialMovingAverage::variables() const { return averages_->all(); }
const std::string& ExponentialMovingAverage::name() const { return averages_->name(); }
std::shared_ptr<Trackable> ExponentialMovingAverage::trackable() const {
  return averages_.pointer();
}

}  // namespace cohort::train
