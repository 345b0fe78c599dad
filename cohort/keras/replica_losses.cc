#include "cohort/keras/replica_losses.h"

#include "cohort/distribute/context.h"
#include "cohort/distribute/replica_context.h"

namespace cohort::internal {

ReplicaLosses::Owner ReplicaLosses::calling_owner() {
  const distribute::ReplicaContext* replica = distribute::get_replica_context();
  return {&Task::current(), replica == nullptr ? 0 : replica->local_replica_id()};
}

void ReplicaLosses::add(const Tensor& loss) {
  const Owner owner = calling_owner();
  std::lock_guard lock(mutex_);
  losses_[owner].push_back(loss);
  used_.store(true, std::memory_order_release);
}

void ReplicaLosses::clear() {
  if (!used_.load(std::memory_order_acquire)) return;
  const Owner owner = calling_owner();
  std::vector<Tensor> dropped;  // their graphs are freed outside of the lock
  std::lock_guard lock(mutex_);
  const auto own = losses_.find(owner);
  if (own != losses_.end()) dropped.swap(own->second);
}

std::vector<Tensor> ReplicaLosses::get() const {
  if (!used_.load(std::memory_order_acquire)) return {};
  const Owner owner = calling_owner();
  std::lock_guard lock(mutex_);
  const auto own = losses_.find(owner);
  return own == losses_.end() ? std::vector<Tensor>() : own->second;
}

}  // namespace cohort::internal
