// The objects of a save, and what of an earlier restore still waits for objects that will come.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/train/objects/late_restore.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/save_group.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// Thread safety: none.
class SavedObjects {
 public:
  // Lists the objects that `root` leads to, breadth first: the order in which TensorFlow numbers
  // them.
  explicit SavedObjects(train::Trackable& root);

  const std::vector<train::Trackable*>& order() const { return order_; }
  // Theirs, which most do not name. Errors: FailedPrecondition (they are of different groups).
  std::shared_ptr<train::SaveGroup> save_group() const;
  // The names on the way to object i, escaped.
  const std::string& path(size_t i) const { return paths_[i]; }
  // Its first nodes are the objects in their order.
  ObjectGraph& graph() { return graph_; }

  // A program that was restored and saves before its layers are built, or before the first step
  // has made the optimizer's slots, must not lose them: adds what was restored for children that an
  // object still awaits, with values as they were saved. Errors: as LateRestore::read; DataLoss (of
  // objects that are nested deeper than any program's).
  void carry_over(const std::function<void(const std::string& key, Leaf value)>& add);

 private:
  using Add = std::function<void(const std::string& key, Leaf value)>;
  using Place = std::pair<LateRestore*, uint32_t>;

  // A node of the graph that gets the children of a place.
  struct Parent {
    uint32_t node;
    Place from;
    std::string path;
    int depth;  // below the object that awaits its children
  };

  void carry_children(const Parent& parent, const Add& add);

  std::vector<train::Trackable*> order_;
  std::vector<std::string> paths_;  // of the objects
  ObjectGraph graph_;
  std::map<Place, uint32_t> nodes_;  // of places in restored checkpoints that are in the graph
};

}  // namespace cohort::internal
