// Finds the latest checkpoint of a directory.
#pragma once

#include <optional>
#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/train/saving/checkpoint_options.h"

namespace cohort::internal {

struct FoundLatest {
  std::optional<std::string> path = std::nullopt;
  std::string problem = "";  // what the log should say; empty: nothing
};
// See train::latest_checkpoint.
FoundLatest look_for_latest(FileSystem& files, const std::string& directory,
                            const train::LatestOptions& options = {});
// The same, and says what is wrong.
std::optional<std::string> find_latest(FileSystem& files, const std::string& directory,
                                       const train::LatestOptions& options = {});

}  // namespace cohort::internal
