// Checkpoints as their directory lists them, without a state file.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// The paths "PREFIX-N" whose index exists, the highest N first; none if the directory does not
// exist.
std::vector<std::string> numbered_checkpoints(FileSystem& files, const std::string& prefix);

// The checkpoints of the same prefix with a lower number than `path` ("PREFIX-N"), highest first;
// none if the path does not end in a number.
std::vector<std::string> earlier_checkpoints(FileSystem& files, const std::string& path);

// The highest number in a directory, whatever the prefix; "" if there is none.
std::string highest_checkpoint(FileSystem& files, const std::string& directory);

}  // namespace cohort::internal
