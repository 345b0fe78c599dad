#include "cohort/train/objects/pending_value.h"

#include "cohort/train/objects/checkpoint_restore.h"

namespace cohort::internal {

Tensor PendingValue::read(const train::TensorSlice& part) const {
  return session_->read_pending(node_, part);
}

bool PendingValue::read_elsewhere(std::vector<train::RemoteRead> parts) const {
  return session_->read_pending_elsewhere(node_, std::move(parts));
}

void PendingValue::hand_over(train::Trackable& object) const { session_->hand_over(node_, object); }

}  // namespace cohort::internal
