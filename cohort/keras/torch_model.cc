#include "cohort/keras/torch_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <unordered_map>

#include "cohort/core/profiler/tracing.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/keras/served_modules.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace internal {
namespace {

using NamedTensors = TorchModule::NamedTensors;

// Two submodules may share a tensor: it has two names then. The index under the first of them.
size_t first_of_same(const NamedTensors& list, size_t i) {
  for (size_t j = 0; j < i; ++j) {
    if (list[j].second.is_same(list[i].second)) return j;
  }
  return i;
}

// Errors: InvalidArgument (the first name, shape or dtype that differs).
void check_alike(const NamedTensors& first, const NamedTensors& other, const char* kind,
                 size_t replica) {
  for (size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
    const auto text = [&](const NamedTensors& list) {
      if (i >= list.size()) return std::string("none");
      const size_t same = first_of_same(list, i);
      return str("'", list[i].first, "' ", describe(list[i].second),
                 same == i ? "" : str(" shared with '", list[same].first, "'"));
    };
    if (text(first) == text(other)) continue;
    throw InvalidArgumentError(str("TorchModel: the factory's modules differ: ", kind, " ", i,
                                   " is ", text(first), " in the first and ", text(other),
                                   " in that of replica ", replica,
                                   "; it must build the same module each time"));
  }
}

// Errors: InvalidArgument (a tensor is that of a replica before: they would train in one module).
void check_distinct(const std::vector<TorchModule>& modules, NamedTensors TorchModule::*list,
                    const char* kind) {
  std::unordered_map<const at::TensorImpl*, size_t> owners;  // the first replica that has it
  for (size_t r = 0; r < modules.size(); ++r) {
    for (const auto& [name, tensor] : modules[r].*list) {
      if (!tensor.defined()) continue;
      const size_t owner = owners.try_emplace(tensor.unsafeGetTensorImpl(), r).first->second;
      if (owner == r) continue;
      throw InvalidArgumentError(str("TorchModel: ", kind, " ", quoted(name), " of replica ", r,
                                     " is that of replica ", owner,
                                     "; the factory must build a new module each time"));
    }
  }
}

// Leaves the buffers as they were where forward runs only for the forms of its outputs.
Structure call_of(TorchModule& module, const Structure& inputs, bool training) {
  if (!is_tracing()) return module.call(inputs, training);
  const at::NoGradGuard no_grad;
  std::vector<Tensor> before;
  for (const auto& buffer : module.buffers) {
    before.push_back(buffer.second.defined() ? buffer.second.clone() : Tensor());
  }
  const auto put_back = [&] {
    for (size_t i = 0; i < before.size(); ++i) {
      const Tensor& buffer = module.buffers[i].second;
      if (buffer.defined() && !at::equal(buffer, before[i])) buffer.copy_(before[i]);
    }
  };
  try {
    const Structure outputs = module.call(inputs, training);
    put_back();
    return outputs;
  } catch (...) {
    put_back();
    throw;
  }
}

class TorchModelImpl final : public keras::Model {
 public:
  TorchModelImpl(std::function<TorchModule()> factory, const keras::ModelOptions& options)
      : Model("TorchModel", {.name = options.name, .autocast = false}) {
    if (distribute::has_strategy() && !distribute::in_cross_replica_context()) {
      throw FailedPreconditionError(
          "a TorchModel was made in a step; make it under strategy.scope()");
    }
    const StrategyCore& core = *distribute::get_strategy().core();
    if (core.steps_run_elsewhere()) {
      served_ = std::make_unique<ServedModules>(factory, core.num_local_replicas());
      modules_.push_back(served_->first());
    } else {
      for (int r = 0; r < core.num_local_replicas(); ++r) modules_.push_back(factory());
    }
    for (size_t r = 1; r < modules_.size(); ++r) {
      check_alike(modules_[0].parameters, modules_[r].parameters, "parameter", r);
      check_alike(modules_[0].buffers, modules_[r].buffers, "buffer", r);
    }
    check_distinct(modules_, &TorchModule::parameters, "parameter");
    check_distinct(modules_, &TorchModule::buffers, "buffer");
    for (size_t i = 0; i < modules_[0].parameters.size(); ++i) add_parameter(i);
    for (size_t i = 0; i < modules_[0].buffers.size(); ++i) add_buffer(i);
    if (served_ != nullptr) served_->begin();
  }

  // The present values of the model's tensors of these names.
  void write_to(const NamedTensors& targets, NamedTensors TorchModule::*list,
                const char* kind) const {
    const NamedTensors& known = modules_[0].*list;
    for (const auto& [name, target] : targets) {
      const auto same_name = [&name = name](const auto& own) { return own.first == name; };
      const auto found = std::find_if(known.begin(), known.end(), same_name);
      if (found == known.end()) {
        throw InvalidArgumentError(str("copy_to: the module has a ", kind, " ", quoted(name),
                                       ", which model ", quoted(this->name()),
                                       " has not; give a module of the class that it was made of"));
      }
      if (!target.defined() || !found->second.defined()) continue;
      const Tensor value = variables_.at(found->second.unsafeGetTensorImpl()).value();
      if (value.sizes() != target.sizes()) {
        throw InvalidArgumentError(str("copy_to: the module's ", kind, " ", quoted(name), " is ",
                                       describe(target), ", the model's ", describe(value)));
      }
      Tensor(target).copy_(value);
    }
  }

 protected:
  Structure call(const Structure& inputs, const keras::CallOptions& options) override {
    const distribute::ReplicaContext* replica =
        distribute::has_strategy() ? distribute::get_replica_context() : nullptr;
    // Frozen it computes as in evaluation: averages stay as they are.
    const bool training = *options.training && trainable();
    if (served_ != nullptr) {
      const size_t of = replica == nullptr ? 0 : static_cast<size_t>(replica->local_replica_id());
      return served_->call(inputs, training, replica != nullptr, of);
    }
    if (replica != nullptr && owner_ != &Task::current()) {
      throw_of_other_task(str("TorchModel '", name(), "'"), *owner_);
    }
    const size_t index = replica == nullptr ? 0 : static_cast<size_t>(replica->local_replica_id());
    if (index >= modules_.size()) {
      throw FailedPreconditionError(str("TorchModel '", name(), "' was made for ", modules_.size(),
                                        " replicas, but replica ", index,
                                        " called it; make it under strategy.scope()"));
    }
    return call_of(modules_[index], inputs, training);
  }

 private:
  // Lists a tensor of the first module under a further name, if it is a variable already.
  bool track_again(const std::string& name, const Tensor& tensor) {
    const auto known = variables_.find(tensor.unsafeGetTensorImpl());
    if (known == variables_.end()) return false;
    track(name, known->second);
    return true;
  }

  void track_new(const std::string& name, const Tensor& tensor, const Variable& variable) {
    variables_.emplace(tensor.unsafeGetTensorImpl(), variable);
    track(name, variable);
  }

  void add_parameter(size_t i) {
    const auto& [name, first] = modules_[0].parameters[i];
    if (track_again(name, first)) return;
    const Variable variable =
        create_own_variable(first, {.name = name, .trainable = first.requires_grad()});
    if (served_ != nullptr) {
      served_->add_parameter(i, variable);
    } else {
      for (size_t r = 0; r < modules_.size(); ++r) {
        variable.impl().bind_component(r, modules_[r].parameters[i].second);
      }
    }
    track_new(name, first, variable);
  }

  void add_buffer(size_t i) {
    const auto& [name, first] = modules_[0].buffers[i];
    if (!first.defined() || track_again(name, first)) return;
    const Variable variable =
        create_own_variable(first, {.name = name,
                                    .trainable = false,
                                    .synchronization = VariableSynchronization::ON_READ,
                                    .aggregation = first.is_floating_point()
                                                       ? VariableAggregation::MEAN
                                                       : VariableAggregation::ONLY_FIRST_REPLICA});
    if (served_ != nullptr) {
      served_->add_buffer(i, variable);
    } else {
      for (size_t r = 0; r < modules_.size(); ++r) {
        variable.impl().bind_component(r, modules_[r].buffers[i].second);
      }
    }
    track_new(name, first, variable);
  }

  const Task* const owner_ = &Task::current();
  std::unique_ptr<ServedModules> served_;  // where ps tasks keep the variables
  std::vector<TorchModule> modules_;       // by local replica; of served ones the first alone
  std::unordered_map<const at::TensorImpl*, Variable> variables_;  // by the first module's tensor
};

}  // namespace

}  // namespace internal

namespace keras {

TorchModel::TorchModel(std::function<internal::TorchModule()> factory, const ModelOptions& options,
                       Erased)
    : ModelHandle(std::make_shared<internal::TorchModelImpl>(std::move(factory), options)) {}

void TorchModel::write_to(const internal::TorchModule::NamedTensors& parameters,
                          const internal::TorchModule::NamedTensors& buffers) const {
  const NoGradient no_gradient;
  const auto& model = static_cast<const internal::TorchModelImpl&>(*get());
  model.write_to(parameters, &internal::TorchModule::parameters, "parameter");
  model.write_to(buffers, &internal::TorchModule::buffers, "buffer");
}

}  // namespace keras
}  // namespace cohort
