// The modules of a TorchModel whose variables ps tasks keep.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/torch_module.h"

namespace cohort::internal {

// Each task has modules of its own, one per local replica. A step computes with the variables'
// values of that step; the modules' parameters are the tensors by which tapes know the variables.
// Thread safety: calls from any thread, one at a time for each replica of a task.
class ServedModules {
 public:
  using Factory = std::function<TorchModule()>;
  ServedModules(Factory factory, int replicas);

  // The module of the task that made the model: its values are the initial ones.
  const TorchModule& first() const { return modules_.get()[0]; }
  // Parameter or buffer `index` of every module is this variable.
  void add_parameter(size_t index, const Variable& variable);
  void add_buffer(size_t index, const Variable& variable);
  // After the last of them.
  void begin();

  Structure call(const Structure& inputs, bool training, bool in_step, size_t replica) const;

 private:
  using Modules = std::vector<TorchModule>;

  void bind(Modules& modules) const;

  const Factory factory_;
  const int replicas_;
  std::vector<std::pair<size_t, Variable>> parameters_;
  std::vector<std::pair<size_t, Variable>> buffers_;
  bool complete_ = false;
  PerTask<Modules> modules_;
};

}  // namespace cohort::internal
