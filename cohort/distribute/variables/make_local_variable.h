// Creates variables for strategies that keep them in this process, one component per local replica.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>

#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

struct LocalPlacement {
  // One device per local replica; empty: one component, on the device where the initializer creates
  // it.
  c10::ArrayRef<c10::Device> devices = {};
  // The device of the one copy of each ON_WRITE variable; nullopt: each replica has a component.
  std::optional<c10::Device> parameter_device = std::nullopt;
  // Whether the components of a mirrored variable on one device share one storage.
  bool shared_storage = true;
};

// Creates a mirrored, an aggregating or a sync-on-read variable, as `spec` and `placement` say. The
// initializer runs once, in this call.
// Errors: InvalidArgument (synchronization NONE with several replicas), as make_initial_value.
std::shared_ptr<LocalVariable> make_local_variable(
    std::shared_ptr<StrategyCore> core, const distribute::VariableSpec& spec,
    const distribute::VariableInitializer& initializer, const LocalPlacement& placement);

}  // namespace cohort::internal
