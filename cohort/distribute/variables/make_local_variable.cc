#include "cohort/distribute/variables/make_local_variable.h"

#include <utility>
#include <vector>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/error.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/distribute/core/step_transaction.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/aggregating_variable.h"
#include "cohort/distribute/variables/make_variable.h"
#include "cohort/distribute/variables/mirrored_variable.h"
#include "cohort/distribute/variables/sync_on_read_variable.h"

namespace cohort::internal {
namespace {

using distribute::ShardInfo;
using distribute::VariableInitializer;
using distribute::VariableSpec;
using distribute::VariableSynchronization;

// A graph would make its values anew in each replay, in memory of its own.
void not_while_recording(const VariableSpec& spec) {
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr || recording->is_rehearsal()) return;
  recording->refuse(str("it makes the variable '", spec.options.name, "'"));
}

// A contiguous copy: the initial value may be the caller's own tensor.
Tensor copy_to(const c10::Device& device, const Tensor& value) {
  if (value.device() == device) return value.clone(at::MemoryFormat::Contiguous);
  return value.to(device).contiguous();
}

std::vector<Tensor> make_components(const Tensor& initial_value, c10::ArrayRef<c10::Device> devices,
                                    bool shared) {
  std::vector<Tensor> components;
  for (const c10::Device& device : devices) {
    Tensor component;
    for (const Tensor& made : components) {
      if (shared && made.device() == device) component = made;
    }
    components.push_back(component.defined() ? component : copy_to(device, initial_value));
  }
  return components;
}

void check_synchronization(const StrategyCore& core, const VariableSpec& spec) {
  if (spec.options.synchronization != VariableSynchronization::NONE) return;
  if (core.num_replicas_in_sync() == 1) return;
  throw InvalidArgumentError(str("Invalid variable synchronization mode NONE for variable '",
                                 spec.options.name, "' under ", core.name(),
                                 "; use ON_WRITE or ON_READ"));
}

// What decides how the variable's components are written and read.
std::string kind_of(const VariableSpec& spec) {
  constexpr const char* kAggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
  const bool on_read = spec.options.synchronization == VariableSynchronization::ON_READ;
  return str(on_read ? "ON_READ" : "ON_WRITE", " with aggregation ",
             kAggregations[static_cast<size_t>(spec.options.aggregation)],
             *spec.options.trainable ? "" : ", not trainable");
}

// Every task starts from the first one's value. COLLECTIVE, but where replicas move.
Tensor agreed_value(StrategyCore& core, const VariableSpec& spec, const Tensor& value) {
  if (StepTransaction* const transaction = core.transaction()) {
    // Made without the others, from the same seeds; compared when a step ends.
    const Tensor own = value.to(at::kCPU).contiguous();
    transaction->note_made(str(spec.options.name, ", ", kind_of(spec), ", ", describe(own)), own);
    return value;
  }
  if (!core.group().spans_tasks()) return value;
  const Tensor agreed = value.to(at::kCPU).clone(at::MemoryFormat::Contiguous);
  collective::take_from_first_task(core.group(), agreed, spec.options.name, kind_of(spec));
  return agreed;
}

std::shared_ptr<LocalVariable> followed(std::shared_ptr<LocalVariable> variable) {
  variable->follow_replicas();
  return variable;
}

}  // namespace

std::shared_ptr<LocalVariable> make_local_variable(std::shared_ptr<StrategyCore> core,
                                                   const VariableSpec& spec,
                                                   const VariableInitializer& initializer,
                                                   const LocalPlacement& placement) {
  not_while_recording(spec);
  check_synchronization(*core, spec);
  const Tensor value = agreed_value(
      *core, spec, make_initial_value(spec, initializer, ShardInfo::whole(spec.shape)));
  const c10::Device own_device = value.device();
  auto devices =
      placement.devices.empty() ? c10::ArrayRef<c10::Device>(own_device) : placement.devices;
  const std::vector<c10::Device> host(devices.size(), c10::kCPU);
  if (spec.in_host_memory) devices = host;
  if (spec.options.synchronization == VariableSynchronization::ON_READ) {
    return followed(std::make_shared<SyncOnReadVariable>(
        std::move(core), spec, make_components(value, devices, /*shared=*/false)));
  }
  if (placement.parameter_device) {
    return std::make_shared<AggregatingVariable>(
        std::move(core), spec, copy_to(*placement.parameter_device, value), devices);
  }
  return followed(std::make_shared<MirroredVariable>(
      std::move(core), spec, make_components(value, devices, placement.shared_storage)));
}

}  // namespace cohort::internal
