#include "cohort/keras/callbacks/backup_removal.h"

#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "cohort/train/saving/checkpoint_numbers.h"

namespace cohort::internal {

// What points at data goes first: the state, then the indices, the latest one last, since without a
// state the highest number counts. Each must be gone on the disk before the next goes.
void remove_backup(FileSystem& files, const std::string& directory) {
  if (!files.exists(directory)) return;
  const std::string state = join_path(directory, StateFileOptions().name);
  if (files.exists(state)) files.remove(state);
  std::vector<std::string> backups = numbered_checkpoints(files, join_path(directory, kBackupName));
  std::reverse(backups.begin(), backups.end());
  for (const std::string& backup : backups) {
    files.remove(bundle_index_path(backup));
    files.sync_directory(directory);
  }
  for (const std::string& name : files.list(directory)) {
    if (name.starts_with(str(kBackupName, "-"))) files.remove(join_path(directory, name));
  }
}

}  // namespace cohort::internal
