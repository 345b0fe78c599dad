// A checkpoint that is being restored: at once to the objects there are, and to others as they
// appear.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/train/bundle_reader.h"
#include "cohort/train/object_graph.h"
#include "cohort/train/trackable.h"

namespace cohort::internal {

class RestoreSession;

// Where an object is in a checkpoint. An object keeps the one of its latest restore.
struct RestorePosition {
  std::shared_ptr<RestoreSession> session;
  uint32_t node = 0;
  bool restored = false;  // its values were, if it has some

  static std::shared_ptr<RestorePosition>& of(train::Trackable& object) {
    return object.position_;
  }
};

// Objects are matched to those of the checkpoint by the names on the way from the root.
// Thread safety: any thread, for what appears late.
class RestoreSession : public std::enable_shared_from_this<RestoreSession> {
 public:
  // Errors: as BundleReader; NotFound (a checkpoint without an object graph).
  RestoreSession(FileSystem& files, std::string prefix);
  // Warns of values that were never restored, unless somebody asked about them before.
  ~RestoreSession();

  const std::string& prefix() const { return bundle_.prefix(); }

  // Everything is read and verified before the first object changes.
  // Errors: InvalidArgument (values that do not fit their objects: all of them are listed),
  // DataLoss; then nothing has changed.
  void restore(train::Trackable& root);
  // Restores an object that has become child `name` of the one at `parent`, and all below it.
  void restore_late(uint32_t parent, std::string_view name, train::Trackable& child);

  // Names of the objects below `root` that have values, but got none from this checkpoint.
  std::vector<std::string> objects_without_values(train::Trackable& root);
  // Keys of values that no object took.
  std::vector<std::string> values_without_object();
  void no_warning();

 private:
  using Match = std::pair<uint32_t, train::Trackable*>;
  class Source;

  std::vector<Match> match(uint32_t node, train::Trackable& object);
  void apply(const std::vector<Match>& matches, bool late);
  void verify_unread(const std::set<std::string, std::less<>>& read) const;

  std::mutex mutex_;
  BundleReader bundle_;
  ObjectGraph graph_;
  std::vector<std::weak_ptr<RestorePosition>> holders_;  // the object of each node
  std::vector<bool> consumed_;
  bool warn_ = true;
};

}  // namespace cohort::internal
