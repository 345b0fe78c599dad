#include "cohort/keras/optimizers/gradient_accumulator.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/gradients/exchange_plans.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

using keras::optimizers::GradientsAndVariables;

namespace {

Tensor dense(const Tensor& gradient) {
  const Tensor detached = gradient.detach();
  return detached.layout() == at::kStrided ? detached : detached.to_dense();
}

// The sum of two tensors, the first of which may be undefined. Rows stay rows: they may belong to a
// table that nobody holds whole.
Tensor added(const Tensor& sum, const Tensor& gradient) {
  if (!gradient.defined()) return sum;
  if (!sum.defined()) return gradient.detach();
  if (sum.layout() != gradient.layout()) return dense(sum) + dense(gradient);
  const Tensor total = sum + gradient.detach();
  return total.is_sparse() ? total.coalesce() : total;
}

// The same where the sum has memory of its own.
void add_to(Tensor& sum, const Tensor& gradient) {
  if (!sum.defined()) {
    sum = gradient.detach().clone();
  } else if (sum.layout() == at::kStrided && gradient.layout() == at::kStrided) {
    sum.add_(gradient.detach());
  } else {
    sum = added(sum, gradient);
  }
}

// All of them before any is added.
void check_forms(const GradientsAndVariables& gradients) {
  for (const auto& [gradient, variable] : gradients) {
    const bool fits = !gradient.defined() || (gradient.sizes() == variable.shape() &&
                                              gradient.scalar_type() == variable.dtype());
    if (fits) continue;
    throw InvalidArgumentError(str("the gradient of variable '", variable.name(), "' is ",
                                   describe(gradient), ", but the variable is ",
                                   dtype_name(variable.dtype()), " ", shape_str(variable.shape())));
  }
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::string optimizer_name, int64_t steps)
    : optimizer_name_(std::move(optimizer_name)), steps_(steps) {}

Variable GradientAccumulator::make_variable(const std::string& name, std::vector<int64_t> shape,
                                            DType dtype) const {
  return create_own_variable(at::zeros(shape, dtype),
                             {.name = str(optimizer_name_, "/", name),
                              .trainable = false,
                              .synchronization = VariableSynchronization::ON_READ,
                              .aggregation = VariableAggregation::SUM});
}

void GradientAccumulator::make(const std::vector<UpdateTarget>& targets) {
  if (targets.empty()) return;
  is_in_memory_ = targets[0].variable.impl().core()->steps_run_elsewhere();
  if (is_in_memory_) return;
  if (!calls_) {
    calls_ = make_variable("accumulated_calls", {}, float64);
    child_appeared("calls", calls_.impl());
  }
  for (const UpdateTarget& target : targets) {
    const Variable sum = make_variable("gradient_sum/" + target.variable.name(),
                                       target.variable.shape(), target.variable.dtype());
    sums_.emplace(&target.variable.impl(), sum);
    list_.add(sum.impl(), sum.impl_ptr());
  }
}

GradientAccumulator::Own& GradientAccumulator::own_of(const distribute::ReplicaContext& replica) {
  const std::lock_guard lock(mutex_);
  return owns_[{&Task::current(), replica.local_replica_id()}];
}

int64_t GradientAccumulator::calls(const Own& own) const {
  return is_in_memory_ ? own.calls : static_cast<int64_t>(calls_.value().item<double>());
}

void GradientAccumulator::add(Own& own, const Variable& variable, const Tensor& gradient) const {
  if (!is_in_memory_) {
    sums_.at(&variable.impl()).assign_add(dense(gradient));
    return;
  }
  add_to(own.sums[&variable.impl()], gradient);
}

Tensor GradientAccumulator::sum_of(const Own& own, const Variable& variable) const {
  if (!is_in_memory_) return sums_.at(&variable.impl()).value().detach();
  const auto found = own.sums.find(&variable.impl());
  return found == own.sums.end() ? Tensor() : found->second;
}

void GradientAccumulator::check_list(Own& own, bool is_first,
                                     const GradientsAndVariables& gradients) const {
  std::vector<Variable>& list = own.list;
  if (is_first || list.empty()) {  // after a restore, too
    list.clear();
    for (const auto& pair : gradients) list.push_back(pair.second);
    return;
  }
  const auto is_in_list = [&](const auto& pair) {
    return std::find(list.begin(), list.end(), pair.second) != list.end();
  };
  if (gradients.size() == list.size() &&
      std::all_of(gradients.begin(), gradients.end(), is_in_list)) {
    return;
  }
  std::vector<Variable> brought;
  for (const auto& pair : gradients) brought.push_back(pair.second);
  throw InvalidArgumentError(
      str("optimizer '", optimizer_name_, "' adds up the gradients of ", steps_,
          " calls, of which the first brought those of ", list_names(list), ", but this one of ",
          list_names(brought),
          "; bring the same variables until it has updated them, or make an optimizer for each "
          "list"));
}

bool GradientAccumulator::update_is_due(const distribute::ReplicaContext& replica,
                                        const GradientsAndVariables& gradients) {
  const auto defined = [](const auto& pair) { return pair.first.defined(); };
  if (std::none_of(gradients.begin(), gradients.end(), defined)) {
    throw InvalidArgumentError(str("no gradients for any of the variables, the first of which is '",
                                   gradients[0].second.name(),
                                   "'; does the loss depend on them, inside of the tape?"));
  }
  check_forms(gradients);
  Own& own = own_of(replica);
  const int64_t before = calls(own);
  check_list(own, before == 0, gradients);
  if (before + 1 >= steps_) return true;
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.defined()) add(own, variable, gradient);
  }
  if (is_in_memory_) {
    ++own.calls;
  } else {
    calls_.assign_add(1.0);
  }
  return false;
}

std::vector<Tensor> GradientAccumulator::means(const distribute::ReplicaContext& replica,
                                               const GradientsAndVariables& gradients) {
  const Own& own = own_of(replica);
  std::vector<Tensor> means;
  for (const auto& [gradient, variable] : gradients) {
    Tensor total = added(sum_of(own, variable), gradient);
    if (!total.defined()) total = at::zeros(variable.shape(), variable.dtype());
    means.push_back(total / static_cast<double>(steps_));
  }
  return means;
}

void GradientAccumulator::clear(const distribute::ReplicaContext& replica,
                                const GradientsAndVariables& gradients) {
  if (is_in_memory_) {
    Own& own = own_of(replica);
    own.sums.clear();
    own.calls = 0;
    return;
  }
  for (const auto& [gradient, variable] : gradients) {
    const Variable& sum = sums_.at(&variable.impl());
    sum.assign(at::zeros(sum.shape(), sum.dtype()));
  }
  calls_.assign(at::zeros({}, float64));
}

std::vector<train::TrackableChild> GradientAccumulator::checkpoint_children() {
  std::vector<train::TrackableChild> children = {{"sums", &list_}};
  if (calls_) children.push_back({"calls", &calls_.impl()});
  return children;
}

}  // namespace cohort::internal
