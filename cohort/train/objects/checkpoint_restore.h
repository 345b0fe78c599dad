// A checkpoint that is being restored: at once to the objects there are, and to others as they
// appear.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/pending_value.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

class RestoreSession;

// The place of an object in a checkpoint. An object keeps the one of its latest restore.
struct RestorePosition {
  std::shared_ptr<RestoreSession> session;
  uint32_t node = 0;
  bool restored = false;  // its values were, if it has some

  static std::shared_ptr<RestorePosition>& of(train::Trackable& object) { return object.position_; }
};

// Called when everything is read and nothing has changed yet, with the keys of the values that
// objects here take; returns those that objects of the whole group take. What it throws ends the
// restore.
using RestoreAgreement =
    std::function<std::set<std::string, std::less<>>(const std::set<std::string, std::less<>>&)>;

// Objects are matched to those of the checkpoint by the names on the way from the root.
// Thread safety: any thread, for what appears late.
class RestoreSession : public std::enable_shared_from_this<RestoreSession> {
 public:
  // Errors: as BundleReader; NotFound (a checkpoint without an object graph).
  RestoreSession(FileSystem& files, std::string prefix);
  // Warns of values that were never restored, unless somebody asked about them before.
  ~RestoreSession();

  const std::string& prefix() const { return prefix_; }

  // Everything is read and verified before the first object changes.
  // Errors: InvalidArgument (values that do not fit their objects: all of them are listed),
  // DataLoss; then nothing has changed.
  void restore(train::Trackable& root, const RestoreAgreement& agree);
  // Restores an object that has become child `name` of the one at `parent`, and all below it. It
  // takes the place of an earlier one of that name: the build of a layer may fail and be repeated.
  void restore_late(uint32_t parent, std::string_view name, train::Trackable& child);

  // See Trackable::pending_value; of child `name` of the object at `parent`.
  std::shared_ptr<PendingValue> find_pending(uint32_t parent, std::string_view name,
                                             at::IntArrayRef shape, DType dtype);
  // See PendingValue.
  Tensor read_pending(uint32_t node, const train::TensorSlice& part);
  bool read_pending_elsewhere(uint32_t node, std::vector<train::RemoteRead> parts);
  void hand_over(uint32_t node, train::Trackable& object);

  // Names of the objects below `root` that have values, but got none from this checkpoint.
  std::vector<std::string> objects_without_values(train::Trackable& root);
  // Keys of values that no object took.
  std::vector<std::string> values_without_object();
  void no_warning();

  // For a save in between: what was restored and still waits for its objects.
  const ObjectGraph& graph() const { return graph_; }
  // Whether an object has taken the place of the node.
  bool is_taken(uint32_t node);
  // Nobody waits any more for the values of the node and of all below it: no warning tells of them.
  void give_up(uint32_t node);
  // The whole value of a key of the graph. Errors: as BundleReader::read.
  Leaf read(const std::string& key);

 private:
  using Match = std::pair<uint32_t, train::Trackable*>;
  class Source;

  // Opened again if need be: a second object may ask for a value, where the first was given up.
  const BundleReader& bundle();
  // nullptr: the checkpoint has no such child.
  const uint32_t* find_child(uint32_t parent, std::string_view name) const;
  std::vector<Match> match(uint32_t node, train::Trackable& object, bool late);
  // `agree`: empty for what appears late, of which each process has its own time.
  void apply(const std::vector<Match>& matches, const RestoreAgreement& agree);
  void close_if_consumed();
  bool is_consumed(uint32_t node, const ObjectGraph::Attribute& attribute) const;

  FileSystem& files_;
  const std::string prefix_;
  std::mutex mutex_;
  std::optional<BundleReader> bundle_;  // none any more once everything was consumed
  const uint32_t index_crc_;
  ObjectGraph graph_;
  std::vector<std::weak_ptr<RestorePosition>> holders_;  // the object of each node
  std::set<std::string, std::less<>> consumed_;          // keys
  bool warn_ = true;
};

}  // namespace cohort::internal
