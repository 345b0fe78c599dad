// Names of files that are written before they are renamed. A name tells which process writes the
// file, so that files which a dead process left can be told from those that a living one is
// writing.
//
//   temporary_path("dir", "ckpt-1.data")     // "dir/.cohort-tmp-5f3a9c01.4711.2f81a3-ckpt-1.data"
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

inline constexpr std::string_view kTemporaryPrefix = ".cohort-tmp-";
inline constexpr std::string_view kUnlockedPrefix = ".cohort-unfinished-";

// A temporary path of this process. Of a long `name` only the end is used: two files that are
// written at the same time must not have the last 150 bytes in common.
std::string temporary_path(const std::string& directory, std::string_view name);

// Whether `name` (without its directory) is a temporary file that nobody writes any more, as far as
// the holder of the directory's lock can tell. A process keeps its files only if this process sees
// it running, and if it is another one. The lock proves that other hosts' processes are gone.
bool is_left_over(std::string_view name);

// The same for directories without a lock, in which anybody may be writing files of that name. Each
// call gives another path, and is_left_over is false for it.
std::string unlocked_temporary_path(const std::string& directory, std::string_view name);

// Removes a file or link, or a directory with all that is in it. What cannot be removed stays.
void remove_tree(FileSystem& files, const std::string& path) noexcept;

// Removes such files and directories of processes of this host that have ended. What cannot be
// removed stays.
void remove_unlocked_left_overs(FileSystem& files, const std::string& directory) noexcept;

}  // namespace cohort::internal
