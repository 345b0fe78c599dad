#include "cohort/keras/replica_losses.h"

#include "cohort/distribute/context.h"
#include "cohort/distribute/replica_context.h"

namespace cohort::internal {
namespace {

size_t calling_replica_index() {
  const distribute::ReplicaContext* replica = distribute::get_replica_context();
  return replica == nullptr ? 0 : static_cast<size_t>(replica->local_replica_id());
}

}  // namespace

void ReplicaLosses::add(const Tensor& loss) {
  const size_t index = calling_replica_index();
  std::lock_guard lock(mutex_);
  if (losses_.size() <= index) losses_.resize(index + 1);
  losses_[index].push_back(loss);
  used_.store(true, std::memory_order_release);
}

void ReplicaLosses::clear() {
  if (!used_.load(std::memory_order_acquire)) return;
  const size_t index = calling_replica_index();
  std::vector<Tensor> dropped;  // their graphs are freed outside of the lock
  std::lock_guard lock(mutex_);
  if (index < losses_.size()) dropped.swap(losses_[index]);
}

std::vector<Tensor> ReplicaLosses::get() const {
  if (!used_.load(std::memory_order_acquire)) return {};
  const size_t index = calling_replica_index();
  std::lock_guard lock(mutex_);
  return index < losses_.size() ? losses_[index] : std::vector<Tensor>();
}

}  // namespace cohort::internal
