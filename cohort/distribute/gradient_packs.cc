#include "cohort/distribute/gradient_packs.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "cohort/collective/slices.h"
#include "cohort/core/phase.h"
#include "cohort/distribute/local_variable.h"

namespace cohort::internal {

GradientPacks::GradientPacks(const std::vector<distribute::Variable>& variables, size_t replicas,
                             int64_t bytes_per_pack)
    : num_variables_(variables.size()),
      num_replicas_(replicas),
      pack_of_(variables.size()),
      gradients_(replicas * variables.size()),
      sums_(variables.size()) {
  int64_t bytes = bytes_per_pack;
  for (size_t i = variables.size(); i-- > 0;) {
    if (bytes >= bytes_per_pack) {
      packs_.push_back(std::make_unique<Pack>());
      bytes = 0;
    }
    packs_.back()->variables.push_back(i);
    pack_of_[i] = packs_.size() - 1;
    bytes += static_cast<int64_t>(variables[i].impl().local().component(0).nbytes());
  }
}

void GradientPacks::begin() {
  std::fill(gradients_.begin(), gradients_.end(), Tensor());
  finished_ = 0;
  for (const auto& pack : packs_) {
    pack->missing = pack->variables.size() * num_replicas_;
    pack->taken = false;
    pack->reduced = false;
  }
}

void GradientPacks::bring(size_t replica, size_t variable, Tensor gradient) {
  gradients_[replica * num_variables_ + variable] = std::move(gradient);
  --packs_[pack_of_[variable]]->missing;
}

void GradientPacks::reduce_complete() {
  if (finished_.fetch_add(1) + 1 == num_replicas_) return;
  for (const auto& pack : packs_) {
    if (pack->missing.load() == 0 && !pack->taken.exchange(true)) pack->reduced = reduce(*pack);
  }
}

void GradientPacks::forget(size_t replica) {
  for (size_t i = 0; i < num_variables_; ++i) gradients_[replica * num_variables_ + i].reset();
}

bool GradientPacks::reduce(const Pack& pack) {
  const auto is_dense = [&](size_t variable) {
    for (size_t r = 0; r < num_replicas_; ++r) {
      const Tensor& one = gradient(r, variable);
      if (one.layout() != at::kStrided || !one.is_cpu()) return false;
    }
    return true;
  };
  if (!std::all_of(pack.variables.begin(), pack.variables.end(), is_dense)) return false;
  const ScopedPhase phase(profiler::Phase::kReduce);
  for (const size_t variable : pack.variables) {
    c10::SmallVector<const void*, 8> sources;
    for (size_t r = 0; r < num_replicas_; ++r) sources.push_back(gradient(r, variable).data_ptr());
    Tensor& sum = sums_[variable];
    if (!sum.defined()) sum = at::empty_like(gradient(0, variable));
    collective::add_slices(sum.data_ptr(), sources, sum.numel(), sum.scalar_type());
  }
  return true;
}

}  // namespace cohort::internal
