#include "cohort/distribute/reduce/reduction_to_one_device.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>

#include <atomic>
#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_devices.h"
#include "cohort/distribute/values/reduction.h"

namespace cohort::distribute {
namespace {

constexpr int kLoggedReductions = 10;
std::atomic<int> logged_reductions{0};

void log_reduction(const std::string& device, const Destinations& destinations) {
  if (logged_reductions.load() >= kLoggedReductions || logged_reductions++ >= kLoggedReductions) {
    return;
  }
  const bool one = destinations.devices().size() == 1;
  internal::log_info("Reduce to ", device, " then broadcast to (",
                     internal::device_list(destinations.devices()), one ? ",)." : ").");
}

// The rows of all values, in their order.
Tensor all_rows(const std::vector<Tensor>& values) {
  std::vector<Tensor> indices, rows;
  for (const Tensor& value : values) {
    if (value.layout() != at::kSparse || value.sparse_dim() != values[0].sparse_dim()) {
      throw InvalidArgumentError(internal::str(
          "sparse values can be reduced with sparse values of as many sparse dimensions alone, but "
          "one is ",
          internal::describe(value)));
    }
    indices.push_back(value._indices());
    rows.push_back(value._values());
  }
  return at::_sparse_coo_tensor_unsafe(at::cat(indices, 1), at::cat(rows, 0), values[0].sizes());
}

Tensor in_order(at::ArrayRef<Tensor> values) {
  Tensor sum = values[0];
  for (const Tensor& value : values.slice(1)) sum = sum + value;
  return sum;
}

}  // namespace

ReductionToOneDevice::ReductionToOneDevice(std::string_view reduce_to_device,
                                           AccumulationFunction accumulation_fn)
    : device_(reduce_to_device.empty() ? "" : canonicalize(reduce_to_device)),
      accumulation_fn_(std::move(accumulation_fn)) {
  if (!device_.empty()) internal::torch_device(device_);
}

Tensor ReductionToOneDevice::accumulate(const std::vector<Tensor>& values) const {
  if (values[0].layout() == at::kSparse) return all_rows(values);
  if (!accumulation_fn_) return internal::wide_sum(values, in_order);
  Tensor sum = accumulation_fn_(values);
  if (sum.defined() && sum.sizes() == values[0].sizes()) return sum;
  throw InvalidArgumentError(internal::str("accumulation_fn made ", internal::describe(sum),
                                           " of values of shape ",
                                           internal::shape_str(values[0].sizes())));
}

Mirrored<Tensor> ReductionToOneDevice::reduce_implementation(
    ReduceOp op, const PerReplica<Tensor>& value, const Destinations& destinations) const {
  const std::string& name = device_.empty() ? destinations.devices()[0] : device_;
  log_reduction(name, destinations);
  const c10::Device device = internal::torch_device(name);
  std::vector<Tensor> values;
  for (const Tensor& component : value.values()) values.push_back(component.to(device));
  const Tensor sum = accumulate(values);
  if (op == ReduceOp::SUM) {
    return broadcast(internal::sum_that_fits(sum, values[0], "reduce"), destinations);
  }
  return broadcast(
      internal::mean_of(sum, static_cast<int64_t>(values.size()), values[0].scalar_type()),
      destinations);
}

}  // namespace cohort::distribute
