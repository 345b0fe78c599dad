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
#include "cohort/train/trackable.h"

namespace cohort::internal {

class CheckpointDirectory;

class SavedObjects;

struct SavedPart {
  std::string key;
  Leaf value;  // contiguous, on the CPU
  std::optional<train::TensorSlice> slice = std::nullopt;
  std::vector<int64_t> full_shape = {};  // of a slice's whole
  bool carried = false;                  // from a restored checkpoint, for an object that may come
};

// The values of objects at one moment, and their graph.
// Thread safety: none.
class Snapshot {
 public:
  // Collects the values, which share memory with their objects where they can.
  // Errors: as Trackable::checkpoint_values; Unimplemented (a dtype that files cannot hold).
  static Snapshot take(SavedObjects& objects);

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

  uint64_t bytes() const;
  void write(FileSystem& files, const std::string& prefix) const;

 private:
  std::vector<SavedPart> parts_;
  std::string graph_;
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
