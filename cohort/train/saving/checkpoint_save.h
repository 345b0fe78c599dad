// What a save takes of its objects, and how it gets to the disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/train/objects/remote_values.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

class BundleWriter;
class CheckpointDirectory;
class SavedObjects;

struct SavedPart {
  std::string key;
  Leaf value;  // contiguous, on the CPU
  std::optional<train::TensorSlice> slice = std::nullopt;
  std::vector<int64_t> full_shape = {};  // of a slice's whole
  bool carried = false;                  // from a restored checkpoint, for an object that may come
  // Another process has it: then `value` has its form only.
  struct Remote {
    size_t source;  // among those of the snapshot
    size_t part;
  };
  std::optional<Remote> remote = std::nullopt;
};

// The values of objects at one moment, and their graph.
// Thread safety: none.
class Snapshot {
 public:
  // Collects the values, which share memory with their objects where they can. `timeout`: of a call
  // to a process that has some of them.
  // Errors: as Trackable::checkpoint_values, RemoteKeeper::keep; Unimplemented (a dtype that files
  // cannot hold).
  static Snapshot take(SavedObjects& objects, std::chrono::milliseconds timeout);

  const std::vector<SavedPart>& parts() const { return parts_; }
  // See format_object_graph.
  const std::string& graph() const { return graph_; }
  // What other members of the group bring.
  void add(SavedPart part) { parts_.push_back(std::move(part)); }
  void replace(size_t place, SavedPart part) { parts_[place] = std::move(part); }
  void set_graph(std::string graph) { graph_ = std::move(graph); }

  // Copies what is shared, so that the objects may change. Copies go into the memory of
  // `previous`, a snapshot that nobody needs any more, where its tensors fit.
  void detach(Snapshot previous);

  // How many bytes of values lie in this process.
  uint64_t bytes() const;
  // Processes that have values write them to files of their own, where they see the directory; else
  // their values are fetched, one at a time.
  void write(FileSystem& files, const std::string& prefix) const;
  // Processes need not keep their values any more; nothing can be written then.
  void let_go_of_remote() { remote_.clear(); }

 private:
  // The tensor of a part that this process has, or fetches.
  Tensor tensor_of(const SavedPart& part) const;

  std::vector<SavedPart> parts_;
  std::string graph_;
  std::vector<std::shared_ptr<train::RemoteValues>> remote_;
};

struct SaveTarget {
  FileSystem& files;
  CheckpointDirectory& directory;
  std::string prefix;
  std::chrono::milliseconds timeout;  // for the turn among the directory's writers
};

// Saves a snapshot as the directory's only writer. `then` runs under the same lock, once the
// checkpoint is safe. Returns what it returns.
std::string save_snapshot(const SaveTarget& target, const Snapshot& snapshot,
                          const std::function<std::string()>& then);

}  // namespace cohort::internal
