#include "cohort/distribute/variables/aggregating_variable.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "cohort/distribute/core/replica.h"

namespace cohort::internal {

AggregatingVariable::AggregatingVariable(std::shared_ptr<StrategyCore> core,
                                         distribute::VariableSpec spec, const Tensor& copy,
                                         c10::ArrayRef<c10::Device> replica_devices)
    : OnWriteVariable(std::move(core), std::move(spec),
                      std::vector<Tensor>(replica_devices.size(), copy)),
      fetched_(replica_devices.size(), -1) {
  for (size_t r = 0; r < replica_devices.size(); ++r) {
    if (replica_devices[r] == copy.device()) continue;
    replace_leaf(r, at::empty_like(copy, copy.options().device(replica_devices[r])));
  }
}

bool AggregatingVariable::has_working_copy(size_t replica) const {
  return leaf(replica).device() != component(replica).device();
}

Tensor AggregatingVariable::read() const {
  const Replica* context = owners_replica("read");
  if (context == nullptr) return has_working_copy(0) ? component(0) : leaf(0);
  const auto replica = static_cast<size_t>(context->local_replica_id());
  const Tensor& mine = leaf(replica);
  // Every write marks all leaves, and so changes their versions.
  if (has_working_copy(replica) && fetched_[replica] != mine._version()) {
    at::NoGradGuard no_grad;
    mine.copy_(component(replica));
    fetched_[replica] = mine._version();
  }
  return mine;
}

}  // namespace cohort::internal
