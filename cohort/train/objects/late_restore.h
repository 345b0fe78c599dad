// What a restored checkpoint still has for objects that appear after the restore.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/structure/structure.h"
#include "cohort/train/objects/object_graph.h"

namespace cohort::train {
class Trackable;
}

namespace cohort::internal {

class PendingValue;

// A checkpoint whose objects are known by their nodes in its graph.
// Thread safety: any thread.
class LateRestore {
 public:
  virtual ~LateRestore() = default;

  virtual const std::string& prefix() const = 0;

  // Restores an object that has become child `name` of the one at `parent`, and all below it. It
  // takes the place of an earlier one of that name: the build of a layer may fail and be repeated.
  virtual void restore_late(uint32_t parent, std::string_view name, train::Trackable& child) = 0;
  // See Trackable::pending_value; of child `name` of the object at `parent`.
  virtual std::shared_ptr<PendingValue> find_pending(uint32_t parent, std::string_view name,
                                                     at::IntArrayRef shape, DType dtype) = 0;
  // Nobody waits any more for the values of the node and of all below it: no warning tells of them.
  virtual void give_up(uint32_t node) = 0;

  // For a save in between: what was restored and still waits for its objects.
  virtual const ObjectGraph& graph() const = 0;
  // Whether an object has taken the place of the node.
  virtual bool is_taken(uint32_t node) = 0;
  // The whole value of a key of the graph. Errors: as BundleReader::read.
  virtual Leaf read(const std::string& key) = 0;
};

// The place of an object in a checkpoint. An object keeps the one of its latest restore.
struct RestorePosition {
  std::shared_ptr<LateRestore> session;
  uint32_t node = 0;
  bool restored = false;  // its values were, if it has some
};

}  // namespace cohort::internal
