// Names of the files that a save writes before it renames them. A name carries its writer, so that
// what a dead writer left can be told from what a living one is writing.
//
//   temporary_path("dir", "ckpt-1.data")     // "dir/.cohort-tmp-5f3a9c01.4711.2f81a3-ckpt-1.data"
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal {

inline constexpr std::string_view kTemporaryPrefix = ".cohort-tmp-";

// For this process. Of a long `name` the end counts: two files that are written at the same time
// must not have the last 150 bytes in common.
std::string temporary_path(const std::string& directory, std::string_view name);

// Whether `name` (without its directory) is a temporary file that nobody writes any more, as far as
// whoever holds the directory's lock can tell: only a process that this one sees running, and that
// is not this one, keeps its files. Of another host's processes the lock says that they are gone.
bool is_left_over(std::string_view name);

}  // namespace cohort::internal
