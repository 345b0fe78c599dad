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
#include "cohort/train/objects/late_restore.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// The number of saves, a child of the root of every checkpoint.
inline constexpr const char* kSaveCounter = "save_counter";

// Called when everything is read and nothing has changed yet, with the keys of the values that
// objects here take; returns those that objects of the whole group take. What it throws ends the
// restore.
using RestoreAgreement =
    std::function<std::set<std::string, std::less<>>(const std::set<std::string, std::less<>>&)>;

// Objects are matched to those of the checkpoint by the names on the way from the root.
// Thread safety: any thread, for what appears late.
class RestoreSession final : public LateRestore,
                             public std::enable_shared_from_this<RestoreSession> {
 public:
  // Errors: as BundleReader; NotFound (a checkpoint without an object graph).
  RestoreSession(FileSystem& files, std::string prefix);
  // Warns of values that were never restored, unless somebody asked about them before.
  ~RestoreSession() override;

  // Everything is read and verified before the first object changes.
  // Errors: InvalidArgument (values that do not fit their objects: all of them are listed),
  // DataLoss; then nothing has changed.
  void restore(train::Trackable& root, const RestoreAgreement& agree);
  // Names of the objects below `root` that have values, but got none from this checkpoint.
  std::vector<std::string> objects_without_values(train::Trackable& root);
  // Whether an object below `root`, other than the counter of saves, is one of this checkpoint.
  bool has_match_below(train::Trackable& root);
  // Keys of values that no object took.
  std::vector<std::string> values_without_object();
  void no_warning();

  const std::string& prefix() const override { return prefix_; }
  void restore_late(uint32_t parent, std::string_view name, train::Trackable& child) override;
  std::shared_ptr<PendingValue> find_pending(uint32_t parent, std::string_view name,
                                             at::IntArrayRef shape, DType dtype) override;
  void give_up(uint32_t node) override;
  const ObjectGraph& graph() const override { return graph_; }
  bool is_taken(uint32_t node) override;
  Leaf read(const std::string& key) override;

 private:
  using Match = std::pair<uint32_t, train::Trackable*>;
  class Pending;

  // Opened again if need be: a second object may ask for a value, where the first was given up.
  const BundleReader& bundle();
  // nullptr: the checkpoint has no such child.
  const uint32_t* find_child(uint32_t parent, std::string_view name) const;
  std::vector<Match> match(uint32_t node, train::Trackable& object, bool late);
  // `agree`: empty for what appears late, of which each process has its own time.
  void apply(const std::vector<Match>& matches, const RestoreAgreement& agree);
  void close_if_consumed();
  bool has_place(train::Trackable& object) const;
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
