// Objects that not every object of a checkpoint can become: an optimizer is one of its class.
#pragma once

#include <string_view>
#include <vector>

namespace cohort::internal {

// A child of an object in a checkpoint.
struct SavedChild {
  std::string_view name;
  bool is_empty = false;  // it has neither values nor children
};

// Beside Trackable. Thread safety: as Trackable.
class SavedKind {
 public:
  virtual ~SavedKind() = default;

  // Asked before anything changes, with the children of the object that is to be restored into this
  // one.
  // Errors: InvalidArgument (that is of another kind).
  virtual void check_saved(const std::vector<SavedChild>& children) const = 0;
};

}  // namespace cohort::internal
