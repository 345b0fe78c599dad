#include "cohort/distribute/gradients/device_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>

#include "cohort/core/profiler/phase.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/text.h"
#include "cohort/distribute/gradients/device_sum.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {
namespace {

const LocalVariable& local(const distribute::Variable& variable) { return variable.impl().local(); }

// Updates these rows alone: copies of them are updated and written back, the first one perhaps more
// than once, with the same bits.
void update_rows_of(const UpdateTarget& target, size_t component, const RowSums& given,
                    const optim::UpdateRule& rule, const optim::StepScalars& scalars,
                    const Tensor& numbers) {
  const Tensor& rows = given.rows;
  const Tensor& param = local(target.variable).component(component);
  optim::TensorSlice slice{.params = {param.index_select(0, rows)},
                           .slots = {},
                           .gradients = {given.sums},
                           .dtype = param.scalar_type(),
                           .numbers = numbers};
  for (const auto& slot : target.slots) {
    slice.slots.push_back({local(slot).component(component).index_select(0, rows)});
  }
  rule.update_tensors(scalars, slice);
  param.index_copy_(0, rows, slice.params[0]);
  for (size_t s = 0; s < target.slots.size(); ++s) {
    local(target.slots[s]).component(component).index_copy_(0, rows, slice.slots[s][0]);
  }
}

}  // namespace

void DevicePass::update(size_t replica, const UpdateStep& step,
                        const optim::StepScalars& scalars) const {
  const at::NoGradGuard no_grad;
  std::vector<RuleSlice> slices;  // one a rule and dtype
  for (size_t i = 0; i < targets_.size(); ++i) {
    const LocalVariable& variable = local(targets_[i].variable);
    const auto& own = variable.distinct_components();
    if (on_host(variable) || std::find(own.begin(), own.end(), replica) == own.end()) continue;
    const Tensor& param = variable.component(replica);
    const optim::UpdateRule& rule = step.rule_of(targets_[i]);
    if (const auto rows = sparse_sum(i, param.device(), rule)) {
      if (rows->rows.numel() == 0) continue;
      update_rows_of(targets_[i], replica, *rows, rule, scalars,
                     recorded_numbers(step, param.scalar_type()));
      continue;
    }
    const Tensor gradient = dense_sum(i, param.device());
    if (!gradient.defined()) continue;
    optim::TensorSlice& slice =
        slice_of(slices, rule, param.scalar_type(), targets_[i].slots.size());
    slice.params.push_back(param);
    slice.gradients.push_back(gradient);
    for (size_t k = 0; k < targets_[i].slots.size(); ++k) {
      slice.slots[k].push_back(local(targets_[i].slots[k]).component(replica));
    }
  }
  for (RuleSlice& one : slices) {
    one.slice.numbers = recorded_numbers(step, one.slice.dtype);
    one.rule.update_tensors(scalars, one.slice);
  }
}

Tensor DevicePass::recorded_numbers(const UpdateStep& step, DType dtype) {
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) return {};
  if (!step.rule.takes_device_numbers() || step.scalars_of_replay == nullptr) {
    recording->refuse(str("the optimizer's rule ", step.rule.name(),
                          " takes the numbers of a step from the host"));
    return {};
  }
  return recording->host_values({static_cast<int64_t>(optim::kStepNumbers)}, dtype,
                                [scalars_of = step.scalars_of_replay, dtype](const Tensor& host) {
                                  const optim::StepScalars scalars = scalars_of();
                                  for (size_t i = 0; i < optim::kStepNumbers; ++i) {
                                    const double number = optim::number_of_step(scalars, dtype, i);
                                    if (dtype == float32) {
                                      host.data_ptr<float>()[i] = static_cast<float>(number);
                                    } else {
                                      host.data_ptr<double>()[i] = number;
                                    }
                                  }
                                });
}

Tensor DevicePass::sum(size_t i) const {
  const at::NoGradGuard no_grad;
  return dense_sum(i, local(targets_[i].variable).component(0).device());
}

Tensor DevicePass::dense_sum(size_t i, c10::Device device) const {
  const ScopedPhase phase(profiler::Phase::kReduce);
  if (!from_.sums.empty()) {
    const Tensor& sum = from_.sums[i];
    if (!sum.defined()) return sum;
    const Tensor here = moved_gradient(sum, device).view(targets_[i].variable.shape());
    if (from_.scale_on_device.defined())
      return here * moved_gradient(from_.scale_on_device, device);
    return from_.scale == 1 ? here : here * from_.scale;
  }
  DeviceSum sum(device);
  for (size_t r = 0; r < from_.replicas.size(); ++r) {
    const Tensor& gradient = of_replica(from_.replicas, r).gradients[i];
    if (gradient.defined()) sum.add(gradient);
  }
  return sum.sum();
}

std::optional<RowSums> DevicePass::sparse_sum(size_t i, c10::Device device,
                                              const optim::UpdateRule& rule) const {
  if (!from_.sums.empty() || !rule.zero_gradient_is_no_op()) return {};
  std::vector<Tensor> rows, values;
  for (size_t r = 0; r < from_.replicas.size(); ++r) {
    const Tensor& gradient = of_replica(from_.replicas, r).gradients[i];
    if (!gradient.defined()) continue;
    if (gradient.layout() == at::kStrided || gradient.sparse_dim() != 1) return {};
    const Tensor here = moved_gradient(gradient, device);
    rows.push_back(here._indices().select(0, 0));
    values.push_back(here._values());
  }
  if (rows.empty()) return {};
  const Tensor all = at::cat(rows);
  if (all.numel() == 0) return RowSums{all, values[0]};
  return add_up_rows(all, at::cat(values));
}

optim::TensorSlice& DevicePass::slice_of(std::vector<RuleSlice>& slices,
                                         const optim::UpdateRule& rule, DType dtype,
                                         size_t num_slots) {
  for (RuleSlice& one : slices) {
    if (&one.rule == &rule && one.slice.dtype == dtype) return one.slice;
  }
  slices.push_back({rule,
                    {.params = {},
                     .slots = std::vector<std::vector<Tensor>>(num_slots),
                     .gradients = {},
                     .dtype = dtype}});
  return slices.back().slice;
}

}  // namespace cohort::internal
