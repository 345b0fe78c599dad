// Checks whether files can be written into a directory, for code that will do so only much later.
#pragma once

#include <string>

namespace cohort::internal {

// Makes nothing: a missing directory can be made if the nearest existing directory above it can be
// written to. Symbolic links are followed. Nobody knows what happens to the directory afterwards,
// and how much space there is.
// Errors: as FileSystem's: NotFound (a part of the path is a file), PermissionDenied (also where
// the file system is mounted read-only), ...
void check_directory_is_writable(const std::string& path);

}  // namespace cohort::internal
