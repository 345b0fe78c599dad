// A value of a restored checkpoint that waits for its object.
#pragma once

#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/train/bundle/tensor_slice.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::train {
class Trackable;
}

namespace cohort::internal {

// Lets the object be made from the value at once: an object that is made with another value first,
// and restored then, needs memory and time for both. Made by Trackable::pending_value; the value is
// a kVariableValue whose shape and dtype were compared with what the object is to have.
// Thread safety: any thread.
class PendingValue {
 public:
  virtual ~PendingValue() = default;

  // All or a part of it, on the CPU, the caller's own. Errors: DataLoss (damaged file),
  // InvalidArgument (a part that is outside of the value).
  virtual Tensor read(const train::TensorSlice& part) const = 0;
  // Lets other processes read their parts of it, which have one keeper; the keys are those of this
  // value, whatever `parts` says. They have them when this returns. false: some process does not
  // find the checkpoint, and nothing has changed.
  // Errors: those of RemoteKeeper::read and RemoteReads::commit.
  virtual bool read_elsewhere(std::vector<train::RemoteRead> parts) const = 0;
  // Says that `object`, which has no children, was made from the value: it counts as restored, and
  // Trackable::child_appeared does nothing more for it.
  virtual void hand_over(train::Trackable& object) const = 0;
};

}  // namespace cohort::internal
