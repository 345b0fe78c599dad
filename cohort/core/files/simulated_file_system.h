// A file system in memory that fails as it is told, for tests of what must survive: any call may
// fail with any errno, the process may end at any call, and the power may go at any call.
//
//   for (int64_t call = 1;; ++call) {
//     SimulatedFileSystem files;
//     files.set_faults({.kill_at = call});
//     try {
//       save(files);
//       break;                                    // the save has fewer calls
//     } catch (const SimulatedKill&) {
//     }
//     auto found = files.after_power_cut({.entries = Unsynced::kKept});
//     ...what can be loaded from *found?
//   }
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/files/simulated_disk.h"

namespace cohort::internal {

// Thrown by every call after the process "was killed". It is no std::exception, because code that
// handles errors must not take it for one.
struct SimulatedKill {};

// Calls of the file system and of its files are counted from 1, whether they fail or not.
struct FaultPlan {
  int64_t fail_at = 0;  // 0: none. A failing append stores half of its bytes, a failing sync loses
                        // for ever what was to be synced
  int error_number = EIO;
  bool stays_broken = false;  // each call after fail_at fails too
  int64_t kill_at = 0;  // 0: none. Of a call it stops, an append stores half, others do nothing
};

struct SimulatedFileSystemOptions {
  uint64_t capacity_bytes = std::numeric_limits<uint64_t>::max();
  bool remote = false;  // what files say of themselves
};

// Relative paths begin at the root, which is the only directory at first. Thread safety: any
// thread.
class SimulatedFileSystem final : public FileSystem {
 public:
  explicit SimulatedFileSystem(const SimulatedFileSystemOptions& options = {});

  std::unique_ptr<WritableFile> create(const std::string& path,
                                       const CreateOptions& options = {}) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool exists(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;  // files only
  void remove(const std::string& path) override;
  void remove_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directories(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::unique_ptr<FileLock> lock(const std::string& path, std::string_view owner) override;
  std::optional<std::string> lock_holder(const std::string& path) override;

  void set_faults(const FaultPlan& plan);
  // Called before each call with its line of the log, on the thread that makes it: may wait.
  void set_hook(std::function<void(const std::string&)> hook);
  void set_capacity(uint64_t bytes);

  // What was called: line n - 1 is call n ("renaming 'a.tmp' to 'a'").
  std::vector<std::string> log() const;
  int64_t calls() const;

  // What the next process finds, without faults and locks; this one stays as it is.
  std::unique_ptr<SimulatedFileSystem> after_kill() const;
  std::unique_ptr<SimulatedFileSystem> after_power_cut(const PowerCut& cut = {}) const;

  // These three calls are not counted and do not fail.
  std::vector<std::string> file_paths() const;  // all, sorted: "/a/b"
  std::string content(const std::string& path) const;
  // Makes the file if it is missing; durable at once.
  void set_content(const std::string& path, std::string_view bytes);

  struct State;  // what the files and locks share

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cohort::internal
