// Patterns of paths.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/file_system.h"

namespace cohort::internal {

// The paths that match `pattern`, sorted: *, ? and [...] match within a name, a backslash takes
// their meaning from them, and a leading dot is matched by a dot only. A path without any of these
// matches itself, where it exists. Directories that cannot be listed match nothing below them.
// Errors: those of FileSystem, other than that.
std::vector<std::string> matching_paths(FileSystem& files, const std::string& pattern);

}  // namespace cohort::internal
