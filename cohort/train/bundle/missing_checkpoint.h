// What to pass in place of a path at which there is no checkpoint.
#pragma once

#include <string>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Why `prefix`, whose index is missing, names no checkpoint, and what does: it is one of the files
// of a checkpoint, a directory with checkpoints or a model in it, or nothing.
std::string describe_missing_checkpoint(FileSystem& files, const std::string& prefix);

}  // namespace cohort::internal
