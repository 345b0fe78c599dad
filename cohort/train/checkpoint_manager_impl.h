// What stands behind a CheckpointManager.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/saving/kept_checkpoints.h"

namespace cohort::internal {

// Thread safety: as CheckpointManager.
class CheckpointManagerImpl {
 public:
  // `clock`: seconds since the epoch.
  CheckpointManagerImpl(train::Checkpoint checkpoint, std::string directory,
                        train::CheckpointManagerOptions options, std::function<double()> clock);

  std::optional<std::string> save(const train::ManagerSaveOptions& options);
  std::optional<std::string> restore_or_initialize(const train::RestoreOptions& options);

  const std::string& directory() const { return directory_; }
  const train::Checkpoint& checkpoint() const { return checkpoint_; }
  const train::CheckpointManagerOptions& options() const { return options_; }
  const KeptCheckpoints& kept() const { return *kept_; }

 private:
  std::optional<std::string> agree_on_latest(const train::RestoreOptions& options);
  void warn_of_another_writer() const;
  bool is_due(int64_t step, bool check_interval) const;
  std::optional<int64_t> step() const;

  const train::Checkpoint checkpoint_;
  const std::string directory_;
  const train::CheckpointManagerOptions options_;
  const std::shared_ptr<KeptCheckpoints> kept_;
};

}  // namespace cohort::internal
