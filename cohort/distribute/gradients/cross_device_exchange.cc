#include "cohort/distribute/gradients/cross_device_exchange.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "cohort/collective/sync_group.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

using distribute::PerReplica;

CrossDeviceExchange::CrossDeviceExchange(std::unique_ptr<GradientExchange> update,
                                         const distribute::CrossDeviceOps& ops,
                                         size_t local_replicas)
    : GradientExchange(update->targets(), local_replicas),
      update_(std::move(update)),
      ops_(ops),
      gradients_(local_replicas, std::vector<Tensor>(targets().size())) {}

void CrossDeviceExchange::begin(Replica& replica, Arrival) {
  auto& mine = gradients_[static_cast<size_t>(replica.local_replica_id())];
  std::fill(mine.begin(), mine.end(), Tensor());
}

void CrossDeviceExchange::bring(Replica& replica, size_t target, const Tensor& gradient) {
  gradients_[static_cast<size_t>(replica.local_replica_id())][target] =
      usable_gradient(gradient, targets()[target].variable, replica.replica_id_in_sync_group());
}

bool CrossDeviceExchange::has(const Replica& replica, size_t target) const {
  return gradients_[static_cast<size_t>(replica.local_replica_id())][target].defined();
}

void CrossDeviceExchange::reduce() {
  std::vector<distribute::CrossDeviceOps::Pair> pairs;
  std::vector<size_t> places;
  for (size_t i = 0; i < targets().size(); ++i) {
    PerReplica<Tensor>::Values values;
    bool any = false, all_sparse = true;
    for (const auto& of_replica : gradients_) {
      any |= of_replica[i].defined();
      all_sparse &= of_replica[i].defined() && of_replica[i].layout() != at::kStrided;
    }
    if (!any) continue;
    const LocalVariable& variable = targets()[i].variable.impl().local();
    for (size_t r = 0; r < gradients_.size(); ++r) {
      Tensor value = gradients_[r][i];
      if (!value.defined()) value = at::zeros_like(variable.component(std::min(r, variable.num_components() - 1)));
      values.push_back(all_sparse || value.layout() == at::kStrided ? value : value.to_dense());
    }
    const PerReplica<Tensor> value(std::move(values));
    pairs.emplace_back(value, distribute::Destinations(value));
    places.push_back(i);
  }
  reduced_.assign(targets().size(),
                  distribute::Mirrored<Tensor>(distribute::Mirrored<Tensor>::Values()));
  const auto sums = ops_.batch_reduce(distribute::ReduceOp::SUM, pairs);
  for (size_t k = 0; k < places.size(); ++k) reduced_[places[k]] = sums[k];
}

UpdateResult CrossDeviceExchange::finish(Replica& replica, const UpdateStep& step) {
  if (!step.aggregate_gradients) {
    update_->begin(replica, Arrival::kAtOnce);
    const auto& mine = gradients_[static_cast<size_t>(replica.local_replica_id())];
    for (size_t i = 0; i < mine.size(); ++i) update_->bring(replica, i, mine[i]);
    return update_->finish(replica, step);
  }
  const GradientExchange* mine = this;
  replica.merge("apply_gradients", &mine, [&](std::span<void* const> all) {
    const auto first = *static_cast<const GradientExchange* const*>(all[0]);
    for (size_t r = 1; r < all.size(); ++r) {
      const auto other = *static_cast<const GradientExchange* const*>(all[r]);
      check_same_targets(*first, 0, *other, static_cast<int>(r));
    }
    reduce();
  });
  update_->begin(replica, Arrival::kAtOnce);
  const auto own = static_cast<size_t>(replica.local_replica_id());
  for (size_t i = 0; i < reduced_.size(); ++i) {
    if (reduced_[i].size() > 0) update_->bring(replica, i, reduced_[i].value(own));
  }
  UpdateStep apply = step;
  apply.aggregate_gradients = false;  // they are equal now
  return update_->finish(replica, apply);
}

}  // namespace cohort::internal
