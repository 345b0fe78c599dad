#include "cohort/keras/optimizers/gradient_accumulator.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/exchange_plans.h"
#include "cohort/distribute/variable_impl.h"

namespace cohort::internal {

using keras::optimizers::GradientsAndVariables;

namespace {

Tensor dense(const Tensor& gradient) {
  const Tensor detached = gradient.detach();
  return detached.layout() == at::kStrided ? detached : detached.to_dense();
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::string optimizer_name, int64_t steps)
    : optimizer_name_(std::move(optimizer_name)), steps_(steps) {}

Variable GradientAccumulator::make_variable(const std::string& name, std::vector<int64_t> shape,
                                            DType dtype) const {
  return Variable(at::zeros(shape, dtype), {.name = str(optimizer_name_, "/", name),
                                            .trainable = false,
                                            .synchronization = VariableSynchronization::ON_READ,
                                            .aggregation = VariableAggregation::SUM});
}

void GradientAccumulator::make(const std::vector<UpdateTarget>& targets) {
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

const Variable& GradientAccumulator::sum_of(const Variable& variable) const {
  return sums_.at(&variable.impl());
}

void GradientAccumulator::check_list(const distribute::ReplicaContext& replica, bool is_first,
                                     const GradientsAndVariables& gradients) {
  const std::lock_guard lock(mutex_);
  std::vector<Variable>& list = lists_[{&Task::current(), replica.local_replica_id()}];
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
  const auto calls = static_cast<int64_t>(calls_.value().item<double>());
  check_list(replica, calls == 0, gradients);
  if (calls + 1 >= steps_) return true;
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.defined()) sum_of(variable).assign_add(dense(gradient));
  }
  calls_.assign_add(1.0);
  return false;
}

std::vector<Tensor> GradientAccumulator::means(const GradientsAndVariables& gradients) const {
  std::vector<Tensor> means;
  for (const auto& [gradient, variable] : gradients) {
    const Tensor sum = sum_of(variable).value().detach();
    if (gradient.defined() && gradient.sizes() != sum.sizes()) {
      means.push_back(gradient);  // the exchange says what is wrong with it
      continue;
    }
    means.push_back((gradient.defined() ? sum + dense(gradient) : sum) /
                    static_cast<double>(steps_));
  }
  return means;
}

void GradientAccumulator::clear(const GradientsAndVariables& gradients) {
  for (const auto& [gradient, variable] : gradients) {
    const Variable& sum = sum_of(variable);
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
