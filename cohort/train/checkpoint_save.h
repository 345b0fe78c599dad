// What a save takes of its objects, and how it gets to the disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/file_system.h"
#include "cohort/train/trackable.h"

namespace cohort::internal {

class CheckpointDirectory;

// The values of all objects below a root at one moment, and their graph.
// Thread safety: none.
class Snapshot {
 public:
  // Collects the values, which share memory with their objects where they can.
  // Errors: as Trackable::checkpoint_values; Unimplemented (a dtype that files cannot hold).
  static Snapshot take(train::Trackable& root);

  // Copies what is shared, so that the objects may change. Copies go into the memory of
  // `previous`, a snapshot that nobody needs any more, where its tensors fit.
  void detach(Snapshot previous);

  uint64_t bytes() const;
  void write(FileSystem& files, const std::string& prefix) const;

 private:
  struct Part {
    std::string key;
    Leaf value;  // contiguous, on the CPU
    std::optional<train::TensorSlice> slice;
    std::vector<int64_t> full_shape;
  };

  std::vector<Part> parts_;
  std::string graph_;
};

struct SaveTarget {
  FileSystem& files;
  CheckpointDirectory& directory;
  std::string prefix;
  std::chrono::milliseconds timeout;  // for the turn among the directory's writers
};

// Saves a snapshot as the directory's only writer. `then` runs under the same lock, once the
// checkpoint is safe.
void save_snapshot(const SaveTarget& target, const Snapshot& snapshot,
                   const std::function<void()>& then);

}  // namespace cohort::internal
