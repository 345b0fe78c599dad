// How values of the replicas of one process become one value, as an object that a program chooses.
//
//   auto ops = std::make_shared<ReductionToOneDevice>("CPU:0");
//   MirroredStrategy strategy({"CPU:0", "CPU:1"}, {.cross_device_ops = ops});
//   Mirrored<Tensor> sum = ops->reduce(ReduceOp::SUM, losses, "CPU:1");
//
// A strategy without such an object adds up faster, directly where the values lie.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/ops/indexed_slices.h"

namespace cohort::distribute {

// The devices on which the result of a reduction is wanted: one or several that are named, or those
// of a value or of a variable, which do not change by it.
class COHORT_API Destinations {
 public:
  // Errors: InvalidArgument (not a device name, or no such device).
  Destinations(std::string_view device);
  Destinations(const std::string& device) : Destinations(std::string_view(device)) {}
  Destinations(const char* device) : Destinations(std::string_view(device)) {}
  // Several devices, one component for each. Errors: also InvalidArgument (an empty list).
  Destinations(const std::vector<std::string>& devices);
  Destinations(std::initializer_list<std::string> devices)
      : Destinations(std::vector<std::string>(devices)) {}
  // Errors: InvalidArgument (no components; an undefined tensor).
  Destinations(const Tensor& value);
  Destinations(const PerReplica<Tensor>& value);
  Destinations(const Mirrored<Tensor>& value);
  // The devices of the variable. If other processes keep it, this is the host of the calling task,
  // which sends them what is assigned.
  Destinations(const Variable& variable);

  // Canonical names, one for each component of the result. A tensor does not know which of several
  // logical devices it belongs to: it counts for the first of its kind.
  const std::vector<std::string>& devices() const { return devices_; }
  bool operator==(const Destinations&) const = default;

 private:
  std::vector<std::string> devices_;
};

// Thread safety: const calls from any thread, if the subclass's are.
class COHORT_API CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;

  // The sum or mean of the components, on each of the destinations. A value of one component that
  // is there already is returned as it is. Dtypes as Strategy::reduce; sparse values (COO) give the
  // rows of all components, in their order.
  // Shapes: equal -> the same. Errors: InvalidArgument (no components; an undefined one; shapes or
  // dtypes that differ; MEAN of bool; a sum that its integer dtype cannot hold), those of the
  // subclass.
  Mirrored<Tensor> reduce(ReduceOp op, const PerReplica<Tensor>& value,
                          const Destinations& destinations) const;
  Mirrored<Tensor> reduce(ReduceOp op, const Tensor& value,
                          const Destinations& destinations) const {
    return reduce(op, PerReplica<Tensor>({value}), destinations);
  }
  // Reduces its components, or the value itself, if it has one for all replicas.
  Mirrored<Tensor> reduce(ReduceOp op, const Variable& value,
                          const Destinations& destinations) const {
    return reduce(op, value.components(), destinations);
  }
  // The rows of all components, in their order; divided by the number of components for MEAN.
  Mirrored<IndexedSlices> reduce(ReduceOp op, const PerReplica<IndexedSlices>& value,
                                 const Destinations& destinations) const;

  using Pair = std::pair<PerReplica<Tensor>, Destinations>;
  // reduce of each pair.
  std::vector<Mirrored<Tensor>> batch_reduce(ReduceOp op, const std::vector<Pair>& pairs) const;

  // `value` on each of the destinations. Errors: InvalidArgument (an undefined tensor).
  static Mirrored<Tensor> broadcast(const Tensor& value, const Destinations& destinations);
  static Mirrored<IndexedSlices> broadcast(const IndexedSlices& rows,
                                           const Destinations& destinations);

 protected:
  // Reduces checked values, of which there may be one.
  virtual Mirrored<Tensor> reduce_implementation(ReduceOp op, const PerReplica<Tensor>& value,
                                                 const Destinations& destinations) const = 0;
  virtual std::vector<Mirrored<Tensor>> batch_reduce_implementation(
      ReduceOp op, const std::vector<Pair>& pairs) const;
};

// The object with which the original would reduce on these devices, with its log line. The original
// takes NcclAllReduce if all are GPUs of their own and there is NCCL, else ReductionToOneDevice.
// Errors: InvalidArgument (not a device name).
COHORT_API std::shared_ptr<const CrossDeviceOps> choose_cross_device_ops(
    const std::vector<std::string>& devices);

}  // namespace cohort::distribute
