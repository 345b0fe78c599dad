// What PATH on the command line means: one checkpoint, or a directory of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::tools {

// The checkpoint's prefix, if `path` is one, with or without ".index"; nullopt for a directory.
// Errors: NotFound (neither), as FileSystem's.
std::optional<std::string> checkpoint_prefix(internal::FileSystem& files, const std::string& path);
// Errors: NotFound (also for a directory).
std::string require_checkpoint(internal::FileSystem& files, const std::string& path);

// Prefixes of the checkpoints in a directory, "ckpt-2" before "ckpt-10".
// Errors: as FileSystem's.
std::vector<std::string> checkpoints_in(internal::FileSystem& files, const std::string& directory);

// When the index was written, in seconds since 1970; nullopt where that is not known.
std::optional<int64_t> time_written(const std::string& prefix);
// "2024-05-01T12:00:03Z".
std::string time_text(int64_t seconds);

}  // namespace cohort::tools
