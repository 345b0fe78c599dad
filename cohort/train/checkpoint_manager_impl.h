// What stands behind a CheckpointManager.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/checkpoint_state.h"

namespace cohort::internal {

// Thread safety: as CheckpointManager; what a background save changes is guarded.
class CheckpointManagerImpl {
 public:
  // `clock`: seconds since the epoch.
  CheckpointManagerImpl(train::Checkpoint checkpoint, std::string directory,
                        train::CheckpointManagerOptions options, std::function<double()> clock);

  std::optional<std::string> save(const train::ManagerSaveOptions& options,
                                  const std::shared_ptr<CheckpointManagerImpl>& self);
  std::optional<std::string> restore_or_initialize(const train::RestoreOptions& options);

  const std::string& directory() const { return directory_; }
  const train::Checkpoint& checkpoint() const { return checkpoint_; }
  const train::CheckpointManagerOptions& options() const { return options_; }
  std::optional<std::string> latest() const;
  std::vector<std::string> paths() const;

 private:
  struct Kept {
    std::string path;
    double saved_at = 0;  // seconds since the epoch
  };

  void recover();
  bool due(bool check_interval);
  // Under the directory's lock, after `path` was written.
  void record(const std::string& path);
  std::vector<std::string> take_surplus();
  void write_state() const;
  void remove(const std::string& path) const;

  const train::Checkpoint checkpoint_;
  const std::string directory_;
  const train::CheckpointManagerOptions options_;
  const std::function<double()> clock_;
  std::optional<int64_t> last_step_;

  mutable std::mutex mutex_;
  std::vector<Kept> kept_;              // oldest first; guarded by mutex_
  std::optional<std::string> latest_;   // guarded by mutex_
  double last_preserved_ = 0;           // guarded by mutex_
};

}  // namespace cohort::internal
