#include "cohort/keras/training/interrupt_requests.h"

#include <ATen/ops/scalar_tensor.h>

#include <vector>

namespace cohort::internal {

bool InterruptRequests::any() {
  constexpr int64_t kAgreeEvery = 16;
  if (!core_->group().spans_tasks()) return InterruptScope::requested();
  return ++calls_ % kAgreeEvery == 0 && any_now();
}

bool InterruptRequests::any_now() {
  const bool here = InterruptScope::requested();
  if (!core_->group().spans_tasks()) return here;
  const std::vector<Tensor> flags(static_cast<size_t>(core_->num_local_replicas()),
                                  at::scalar_tensor(here ? 1 : 0, at::kLong));
  return core_->sum_over_replicas(flags).item<int64_t>() > 0;
}

}  // namespace cohort::internal
