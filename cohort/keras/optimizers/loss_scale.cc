#include "cohort/keras/optimizers/loss_scale.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {
namespace {

// Keras's names in checkpoints.
constexpr const char* kCurrentScale = "current_loss_scale";
constexpr const char* kCounter = "good_steps";
constexpr float kMultiplier = 2;

void check_strategy(const StrategyCore* core) {
  if (core == nullptr || !core->steps_run_elsewhere()) return;
  throw InvalidArgumentError(
      "a LossScaleOptimizer does not work with parameter servers, in Keras neither: their workers "
      "would change one scale at different times. Use the policy \"mixed_bfloat16\", which needs "
      "no scale, or a strategy whose replicas run in step");
}

Variable make_number(const char* name, const Tensor& initial_value) {
  return create_own_variable(
      {.shape = {},
       .dtype = initial_value.scalar_type(),
       .options = {.name = name,
                   .trainable = false,
                   .synchronization = VariableSynchronization::ON_READ,
                   .aggregation = VariableAggregation::ONLY_FIRST_REPLICA},
       .in_host_memory = true},
      [initial_value](const distribute::ShardInfo&) { return initial_value; });
}

// In the host's memory, where it lies: assign would make the number on the replica's device.
template <class Number>
void assign_own(const Variable& variable, const distribute::ReplicaContext& replica, Number value) {
  const LocalVariable& impl = variable.impl().local();
  const auto own = static_cast<size_t>(replica.local_replica_id());
  // Made under another strategy, it has no component of this replica's own.
  if (impl.core().get() != &replica.core() || !impl.component(own).is_cpu()) {
    variable.assign(value);
    return;
  }
  *impl.component(own).data_ptr<Number>() = value;
  impl.mark_written(own);
}

}  // namespace

void check_scaled_strategy() {
  if (distribute::has_strategy()) check_strategy(distribute::get_strategy().core().get());
}

LossScale::LossScale(double initial_scale, int64_t growth_steps)
    : initial_scale_(initial_scale),
      growth_steps_(growth_steps),
      strategy_(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr) {
  check_strategy(strategy_.get());
}

void LossScale::make() {
  if (once_.done()) return;
  std::optional<distribute::Scope> scope;
  if (strategy_ != nullptr && !distribute::has_strategy()) scope.emplace(strategy_);
  once_("a loss scale", [&] {
    check_strategy(distribute::get_strategy().core().get());
    if (!scale_) scale_ = make_number(kCurrentScale, at::full({}, initial_scale_, float32));
    if (!counter_) counter_ = make_number(kCounter, at::zeros({}, int64));
    child_appeared(kCurrentScale, scale_.impl());
    child_appeared(kCounter, counter_.impl());
  });
}

double LossScale::value() {
  make();
  return scale_.value().item<float>();
}

void LossScale::update(const distribute::ReplicaContext& replica, bool finite) {
  make();
  const auto scale = scale_.value().item<float>();
  const int64_t steps = counter_.value().item<int64_t>() + 1;
  const bool grows = finite && steps >= growth_steps_;
  if (!finite) {
    assign_own(scale_, replica, std::max(scale / kMultiplier, 1.0F));
  } else if (grows && std::isfinite(scale * kMultiplier)) {
    assign_own(scale_, replica, scale * kMultiplier);
  }
  assign_own(counter_, replica, finite && !grows ? steps : int64_t{0});
}

const Variable& LossScale::counter() {
  make();
  return counter_;
}

std::vector<train::TrackableChild> LossScale::checkpoint_children() {
  make();
  return {{kCurrentScale, &scale_.impl()}, {kCounter, &counter_.impl()}};
}

}  // namespace cohort::internal
