#include "cohort/keras/base/replica_tensors.h"

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"

namespace cohort::internal {

ReplicaTensors::Owner ReplicaTensors::calling_owner() {
  const distribute::ReplicaContext* replica = distribute::get_replica_context();
  return {&Task::current(), replica == nullptr ? 0 : replica->local_replica_id()};
}

void ReplicaTensors::add(const Tensor& tensor) {
  const Owner owner = calling_owner();
  std::lock_guard lock(mutex_);
  tensors_[owner].push_back(tensor);
  used_.store(true, std::memory_order_release);
}

void ReplicaTensors::set(std::vector<Tensor> tensors) {
  const Owner owner = calling_owner();
  std::lock_guard lock(mutex_);
  tensors_[owner].swap(tensors);  // the earlier ones are freed outside of the lock
  used_.store(true, std::memory_order_release);
}

void ReplicaTensors::clear_all() {
  std::lock_guard lock(mutex_);
  tensors_.clear();
}

void ReplicaTensors::clear() {
  if (!used_.load(std::memory_order_acquire)) return;
  const Owner owner = calling_owner();
  std::vector<Tensor> dropped;  // their graphs are freed outside of the lock
  std::lock_guard lock(mutex_);
  const auto own = tensors_.find(owner);
  if (own != tensors_.end()) dropped.swap(own->second);
}

std::vector<Tensor> ReplicaTensors::get() const {
  if (!used_.load(std::memory_order_acquire)) return {};
  const Owner owner = calling_owner();
  std::lock_guard lock(mutex_);
  const auto own = tensors_.find(owner);
  return own == tensors_.end() ? std::vector<Tensor>() : own->second;
}

}  // namespace cohort::internal
