// How a backup goes when training is over.
#pragma once

#include <string>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// The name of the backups that a CheckpointManager writes: "backup-1", "backup-2", ...
inline constexpr const char* kBackupName = "backup";

// Removes what such a manager wrote in `directory`, and what an earlier removal has left. A kill or
// a power cut at any moment leaves the latest backup whole, or none.
// Errors: those of the file system.
void remove_backup(FileSystem& files, const std::string& directory);

}  // namespace cohort::internal
