// The lock of a file: flock(2), which ends with its process and excludes within it too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Implements FileSystem::lock. The holder removes the file while it still holds the lock. A process
// that opened the file before, and locks it afterwards, finds that the path no longer names this
// file, and opens the new one.
std::unique_ptr<FileLock> posix_lock(const std::string& path, std::string_view owner);
// FileSystem::lock_holder.
std::optional<std::string> posix_lock_holder(const std::string& path);

}  // namespace cohort::internal
