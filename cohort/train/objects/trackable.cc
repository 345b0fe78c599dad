#include "cohort/train/objects/trackable.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/objects/late_restore.h"
#include "cohort/train/objects/pending_value.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::internal {

std::shared_ptr<RestorePosition>& restore_position(train::Trackable& object) {
  return object.position_;
}

}  // namespace cohort::internal

namespace cohort::train {

Trackable::Trackable() = default;
Trackable::~Trackable() = default;
Trackable::Trackable(const Trackable&) {}
Trackable& Trackable::operator=(const Trackable&) { return *this; }

void Trackable::prepare_restore(RestoreSource&) {}

void RestoreSource::read_remote(std::string_view attribute, at::IntArrayRef full_shape,
                                const std::optional<TensorSlice>& slice,
                                const std::shared_ptr<const RemotePart>& part, Take take) {
  if (slice) return read_slice(attribute, full_shape, *slice, part->dtype(), std::move(take));
  read(attribute, full_shape, part->dtype(), std::move(take));
}

std::shared_ptr<SaveGroup> Trackable::save_group() const { return nullptr; }

void Trackable::child_appeared(std::string_view name, Trackable& child) {
  if (position_ == nullptr) return;
  position_->session->restore_late(position_->node, name, child);
}

std::shared_ptr<internal::PendingValue> Trackable::pending_value(std::string_view name,
                                                                 at::IntArrayRef shape,
                                                                 DType dtype) const {
  if (position_ == nullptr) return nullptr;
  return position_->session->find_pending(position_->node, name, shape, dtype);
}

void TrackableList::add(Trackable& object, std::shared_ptr<Trackable> owner) {
  const std::string name = internal::decimal_digits(objects_.size());
  objects_.emplace_back(&object, std::move(owner));
  child_appeared(name, object);
}

std::vector<TrackableChild> TrackableList::checkpoint_children() {
  std::vector<TrackableChild> children;
  for (const auto& [object, owner] : objects_) {
    children.push_back({internal::decimal_digits(children.size()), object});
  }
  return children;
}

TrackableHandle::TrackableHandle(std::shared_ptr<Trackable> object, Checked)
    : object_(std::move(object)) {
  if (object_.empty()) {
    throw InvalidArgumentError("a checkpoint was given an object that is nullptr");
  }
}

}  // namespace cohort::train
