// The contents of a simulated file system, twice: as programs see them, and as they would be found
// after a power cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// A file or a directory; an entry of a directory leads to it, as in any Unix. What was synced is
// on the device, the rest only in memory.
struct SimulatedNode {
  using Entries = std::map<std::string, std::shared_ptr<SimulatedNode>>;

  bool directory = false;
  std::string bytes;
  std::string synced_bytes;
  Entries entries;
  Entries synced_entries;
  uint64_t reserved_bytes = 0;
  bool pages_dropped = false;  // a sync failed: no later one brings its bytes to the device
  bool locked = false;
};

struct SimulatedPlace {
  std::shared_ptr<SimulatedNode> directory;  // null: there is none, or it is a file
  std::string name;                          // empty: the root
};

// What happens to content that was not synced.
enum class Unsynced {
  kLost,
  kKept,   // the device happened to have it
  kMixed,  // each name on its own: before or after; each sector of a file: before, after or zeros
};

struct PowerCut {
  Unsynced content = Unsynced::kLost;  // of files
  Unsynced entries = Unsynced::kLost;  // of directories: created, renamed and removed names
  uint64_t seed = 0;                   // of kMixed
};

// Thread safety: none.
class SimulatedDisk {
 public:
  SimulatedDisk();

  // Null: there is none. Relative paths begin at the root.
  std::shared_ptr<SimulatedNode> find(std::string_view path) const;
  // The place of a path's last name, whether or not it is there.
  SimulatedPlace place(std::string_view path) const;
  // The number of bytes that files use, as programs see them.
  uint64_t used_bytes() const;
  // The paths of all files, sorted, from the root on ("/a/b").
  std::vector<std::string> file_paths() const;

  // A copy without locks. What is not synced is not synced in the copy either.
  SimulatedDisk copy() const;
  SimulatedDisk after(const PowerCut& cut) const;

 private:
  std::shared_ptr<SimulatedNode> root_;
};

}  // namespace cohort::internal
