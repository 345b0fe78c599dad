#include "cohort/keras/callbacks/backup_removal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort::keras {
namespace {

using internal::PowerCut;
using internal::SimulatedFileSystem;
using internal::SimulatedKill;
using internal::Unsynced;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two, as a kill leaves them between a save and the end of the one before.
void save_two_backups(SimulatedFileSystem& files) {
  const auto value = train::numbers({1});
  const train::Checkpoint checkpoint({{"value", value}});
  internal::use_file_system(checkpoint, files);
  const train::CheckpointManager manager(
      checkpoint, "dir", {.max_to_keep = 2, .checkpoint_name = internal::kBackupName});
  manager.save();
  value->values = {2};
  manager.save();
}

std::vector<std::string> files_of_backups(const SimulatedFileSystem& files) {
  std::vector<std::string> found;
  for (const std::string& path : files.file_paths()) {
    if (path.find("/.") == path.npos) found.push_back(path);  // but for the lock
  }
  return found;
}

// Whether the latest backup is there. If so, it can be restored.
bool has_whole_backup(SimulatedFileSystem& files) {
  const auto latest = internal::find_latest(files, "dir", {.fall_back = true});
  if (!latest) return false;
  const auto value = train::numbers({0});
  const train::Checkpoint checkpoint({{"value", value}});
  internal::use_file_system(checkpoint, files);
  checkpoint.restore(latest);
  EXPECT_THAT(value->values, ElementsAre(2));
  return true;
}

TEST(BackupRemoval, LeavesAWholeBackupOrNoneWheneverItIsKilled) {
  bool saw_whole = false, saw_none = false;
  bool killed = true;
  for (int64_t call = 1; killed; ++call) {
    SimulatedFileSystem files;
    save_two_backups(files);
    files.set_faults({.kill_at = files.calls() + call});
    killed = false;
    try {
      internal::remove_backup(files, "dir");
    } catch (const SimulatedKill&) {
      killed = true;
    }
    std::vector<std::unique_ptr<SimulatedFileSystem>> disks;
    disks.push_back(files.after_kill());
    for (const Unsynced entries : {Unsynced::kLost, Unsynced::kKept}) {
      disks.push_back(files.after_power_cut({.entries = entries}));
    }
    for (uint64_t seed = 0; seed < 8; ++seed) {
      disks.push_back(files.after_power_cut({.entries = Unsynced::kMixed, .seed = seed}));
    }
    for (const auto& disk : disks) {
      SCOPED_TRACE(call);
      const bool whole = has_whole_backup(*disk);
      saw_whole = saw_whole || whole;
      saw_none = saw_none || !whole;
      internal::remove_backup(*disk, "dir");
      EXPECT_THAT(files_of_backups(*disk), IsEmpty());
    }
  }
  EXPECT_TRUE(saw_whole && saw_none);
}

TEST(BackupRemoval, LeavesWhatOthersWrote) {
  SimulatedFileSystem files;
  internal::remove_backup(files, "dir");  // which is not there
  save_two_backups(files);
  files.set_content("/dir/notes", "keep");
  internal::remove_backup(files, "dir");
  EXPECT_THAT(files_of_backups(files), ElementsAre("/dir/notes"));
}

}  // namespace
}  // namespace cohort::keras
