#include "cohort/distribute/gradients/constrain_targets.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {
namespace {

// Whether any replica has a gradient of target `i`, which is updated then.
bool has_gradient(const GradientSources& from, size_t i) {
  if (!from.sums.empty()) {
    return from.sums[i].defined() || (!from.rows.empty() && !from.rows[i].empty());
  }
  for (size_t r = 0; r < from.replicas.size(); ++r) {
    if (of_replica(from.replicas, r).gradients[i].defined()) return true;
  }
  return false;
}

// A recorded step is replayed on the device, without what the host does.
void check_recording(const LocalVariable& variable, const optim::Constraint& constraint) {
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) return;
  const optim::Projection* const projection = constraint.projection();
  if (projection != nullptr && projection->kind != optim::Projection::Kind::kRadial) return;
  recording->refuse(
      str("the constraint of variable '", variable.name(), "' may use the host's memory"));
}

}  // namespace

// On the host one thread makes the value for all components, that of each target another one; on
// devices each replica makes its own component's. One thread adds up the squares of a norm, so that
// their number changes no bits.
void constrain_targets(std::span<const UpdateTarget> targets, const GradientSources& sources,
                       const LocalReplica& replica) {
  const at::NoGradGuard no_grad;
  const OneIntraOpThread one_thread;
  for (size_t i = 0; i < targets.size(); ++i) {
    const optim::Constraint& constraint = targets[i].variable.impl().options().constraint;
    if (!constraint || !has_gradient(sources, i)) continue;
    const LocalVariable& variable = targets[i].variable.impl().local();
    const auto& components = variable.distinct_components();
    if (on_host(variable)) {
      if (i % replica.count != replica.id) continue;
      const Tensor value = constraint(variable.component(0));
      for (const size_t component : components) variable.component(component).copy_(value);
    } else if (std::find(components.begin(), components.end(), replica.id) != components.end()) {
      check_recording(variable, constraint);
      const Tensor& component = variable.component(replica.id);
      component.copy_(constraint(component));
    }
  }
}

}  // namespace cohort::internal
