#include "cohort/distribute/reduce/cross_device_ops.h"

#include <ATen/ops/cat.h>

#include "cohort/collective/replica_collectives.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/values/reduction.h"
#include "cohort/distribute/values/rows_together.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::distribute {
namespace {

std::string device_name_of(const Tensor& value) {
  if (!value.defined()) throw InvalidArgumentError("an undefined tensor has no device");
  if (value.device().is_cpu()) return canonicalize("CPU:0");
  return canonicalize(internal::str("GPU:", int{value.device().index()}));
}

template <class Value>
std::vector<std::string> devices_of(const Value& value) {
  if (value.size() == 0) {
    throw InvalidArgumentError(
        "a reduction needs a destination, but got a value without components");
  }
  std::vector<std::string> devices;
  for (const Tensor& component : value.values()) devices.push_back(device_name_of(component));
  return devices;
}

void check_components(const PerReplica<Tensor>& value) {
  if (value.size() == 0) {
    throw InvalidArgumentError("a reduction needs at least one component, but got none");
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (value.value(i).defined()) continue;
    throw InvalidArgumentError(
        internal::str("component ", i, " of a value to reduce is undefined"));
  }
  collective::check_same_shape({value.values().data(), value.values().size()});
}

// Whether there is nothing to add and nothing to move.
bool is_there(const PerReplica<Tensor>& value, const Destinations& destinations) {
  return value.size() == 1 && destinations.devices().size() == 1 &&
         value.value(0).device() == internal::torch_device(destinations.devices()[0]);
}

}  // namespace

Destinations::Destinations(std::string_view device) : devices_{canonicalize(device)} {
  internal::torch_device(devices_[0]);
}
Destinations::Destinations(const std::vector<std::string>& devices) {
  if (devices.empty()) {
    throw InvalidArgumentError("a reduction needs a destination, but got an empty list of devices");
  }
  for (const std::string& device : devices) {
    devices_.push_back(canonicalize(device));
    internal::torch_device(devices_.back());
  }
}
Destinations::Destinations(const Tensor& value) : devices_{device_name_of(value)} {}
Destinations::Destinations(const PerReplica<Tensor>& value) : devices_(devices_of(value)) {}
Destinations::Destinations(const Mirrored<Tensor>& value) : devices_(devices_of(value)) {}
Destinations::Destinations(const Variable& variable) {
  if (!variable.impl().is_local()) {
    devices_ = {canonicalize("CPU:0")};
    return;
  }
  const internal::LocalVariable& local = variable.impl().local();
  if (variable.impl().core()->is_default()) {
    devices_ = {device_name_of(local.component(0))};
  } else if (local.num_copies() == local.num_components()) {
    devices_ = variable.impl().core()->worker_devices();
  } else {
    devices_ = variable.impl().core()->parameter_devices();
  }
}

Mirrored<Tensor> CrossDeviceOps::reduce(ReduceOp op, const PerReplica<Tensor>& value,
                                        const Destinations& destinations) const {
  check_components(value);
  internal::check_can_reduce(op, value.value(0));
  if (is_there(value, destinations)) return Mirrored<Tensor>({value.value(0)});
  return reduce_implementation(op, value, destinations);
}

Mirrored<IndexedSlices> CrossDeviceOps::reduce(ReduceOp op, const PerReplica<IndexedSlices>& value,
                                               const Destinations& destinations) const {
  const auto join = [](const PerReplica<Tensor>& parts) {
    return at::cat(at::ArrayRef<Tensor>(parts.values().data(), parts.size()));
  };
  return broadcast(internal::rows_together(op, value, static_cast<int64_t>(value.size()), join),
                   destinations);
}

std::vector<Mirrored<Tensor>> CrossDeviceOps::batch_reduce(ReduceOp op,
                                                           const std::vector<Pair>& pairs) const {
  for (const auto& [value, destinations] : pairs) {
    check_components(value);
    internal::check_can_reduce(op, value.value(0));
  }
  return batch_reduce_implementation(op, pairs);
}

std::vector<Mirrored<Tensor>> CrossDeviceOps::batch_reduce_implementation(
    ReduceOp op, const std::vector<Pair>& pairs) const {
  std::vector<Mirrored<Tensor>> reduced;
  reduced.reserve(pairs.size());
  for (const auto& [value, destinations] : pairs) {
    reduced.push_back(reduce(op, value, destinations));
  }
  return reduced;
}

Mirrored<Tensor> CrossDeviceOps::broadcast(const Tensor& value, const Destinations& destinations) {
  if (!value.defined()) throw InvalidArgumentError("an undefined tensor cannot be broadcast");
  Mirrored<Tensor>::Values copies;
  for (const std::string& device : destinations.devices()) {
    copies.push_back(value.to(internal::torch_device(device)));
  }
  return Mirrored<Tensor>(std::move(copies));
}

Mirrored<IndexedSlices> CrossDeviceOps::broadcast(const IndexedSlices& rows,
                                                  const Destinations& destinations) {
  Mirrored<IndexedSlices>::Values copies;
  for (const std::string& name : destinations.devices()) {
    const c10::Device device = internal::torch_device(name);
    copies.push_back({rows.values.to(device), rows.indices.to(device), rows.dense_shape});
  }
  return Mirrored<IndexedSlices>(std::move(copies));
}

}  // namespace cohort::distribute
