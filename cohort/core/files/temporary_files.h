// Names of files that are written before they are renamed. A name carries its writer, so that what a
// dead writer left can be told from what a living one is writing.
//
//   temporary_path("dir", "ckpt-1.data")     // "dir/.cohort-tmp-5f3a9c01.4711.2f81a3-ckpt-1.data"
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

inline constexpr std::string_view kTemporaryPrefix = ".cohort-tmp-";
inline constexpr std::string_view kUnlockedPrefix = ".cohort-unfinished-";

// For this process. Of a long `name` the end counts: two files that are written at the same time
// must not have the last 150 bytes in common.
std::string temporary_path(const std::string& directory, std::string_view name);

// Whether `name` (without its directory) is a temporary file that nobody writes any more, as far as
// whoever holds the directory's lock can tell: only a process that this one sees running, and that
// is not this one, keeps its files. Of another host's processes the lock says that they are gone.
bool is_left_over(std::string_view name);

// The same for directories without a lock, where anybody may be writing files of that name: another path each
// time, and no left-over to who holds a lock.
std::string unlocked_temporary_path(const std::string& directory, std::string_view name);

// Removes those of processes of this host that have ended. What cannot be removed stays.
void remove_unlocked_left_overs(FileSystem& files, const std::string& directory) noexcept;

}  // namespace cohort::internal
