#include "cohort/keras/served_modules.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <memory>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {
namespace {

// What the module has added to the buffer is added to the variable, on top of what other workers
// add meanwhile. Several replicas write together, whether or not each has a change.
void write_back(const Variable& variable, const Tensor& before, const Tensor& after) {
  const bool alone = variable.impl().core()->num_replicas_in_sync() == 1;
  if (alone && at::equal(before, after)) return;
  if (before.scalar_type() == at::kBool) {
    variable.assign(after);
    return;
  }
  const Tensor change = after - before;
  // What is no number has no sum.
  const bool whole = alone && change.is_floating_point() && !change.isfinite().all().item<bool>();
  if (whole) {
    variable.assign(after);
  } else {
    variable.assign_add(change);
  }
}

}  // namespace

ServedModules::ServedModules(Factory factory, int replicas)
    : factory_(std::move(factory)), replicas_(replicas), modules_([this] {
        auto modules = std::make_unique<Modules>();
        for (int r = 0; r < replicas_; ++r) modules->push_back(factory_());
        if (complete_) bind(*modules);
        return modules;
      }) {}

void ServedModules::add_parameter(size_t index, const Variable& variable) {
  parameters_.emplace_back(index, variable);
}

void ServedModules::add_buffer(size_t index, const Variable& variable) {
  buffers_.emplace_back(index, variable);
}

void ServedModules::begin() {
  complete_ = true;
  bind(modules_.get());
}

void ServedModules::bind(Modules& modules) const {
  for (const auto& [index, variable] : parameters_) {
    for (size_t r = 0; r < modules.size(); ++r) {
      variable.impl().bind_component(r, modules[r].parameters[index].second);
    }
  }
}

Structure ServedModules::call(const Structure& inputs, bool training, bool in_step,
                              size_t replica) const {
  TorchModule& module = modules_.get()[replica];
  std::vector<Tensor> before;
  {
    const at::NoGradGuard no_grad;
    for (const auto& [index, variable] : parameters_) {
      // In a step the parameter is the variable's leaf, and reading it brings its value.
      const Tensor value = variable.value();
      if (!in_step) module.parameters[index].second.set_data(value);
    }
    for (const auto& [index, variable] : buffers_) {
      before.push_back(variable.value().detach());
      module.buffers[index].second.set_data(before.back().clone());
    }
  }
  Structure outputs = module.call(inputs, training);
  if (!training || !in_step) return outputs;
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const auto& [index, variable] = buffers_[i];
    // A copy: the variable's value changes with the first of these writes.
    write_back(variable, before[i].clone(), module.buffers[index].second.detach());
  }
  return outputs;
}

}  // namespace cohort::internal
