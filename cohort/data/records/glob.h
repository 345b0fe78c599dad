// Patterns of paths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// The paths that match `pattern`, sorted: *, ? and [...] match within a name, a backslash takes
// their meaning from them, and a leading dot is matched by a dot only. A path without any of these
// matches itself, where it exists. Directories that cannot be listed match nothing below them;
// `denied` gets the first that may not be. Errors: those of FileSystem, other than that.
std::vector<std::string> matching_paths(FileSystem& files, const std::string& pattern,
                                        std::optional<std::string>* denied = nullptr);

// What to throw where nothing matches `patterns`, which are quoted: PermissionDenied where a
// directory may not be listed, since it may hold what was looked for, else NotFound.
[[noreturn]] void throw_no_match(const std::string& patterns,
                                 const std::optional<std::string>& denied);

}  // namespace cohort::internal
