// Whether files can be written into a directory, for whoever will do that only much later.
#pragma once

#include <string>

namespace cohort::internal {

// Makes nothing: a directory that is missing can be made if the nearest one above it that exists can
// be written to. Symbolic links are followed. What happens to the directory afterwards, and how much
// space there is, nobody knows.
// Errors: as FileSystem's: NotFound (a part of the path is a file), PermissionDenied (also
// where the file system is mounted read-only), ...
void check_directory_is_writable(const std::string& path);

}  // namespace cohort::internal
