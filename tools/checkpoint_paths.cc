#include "tools/checkpoint_paths.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/utc_text.h"
#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::tools {

using internal::quoted;
using internal::str;

namespace {

constexpr std::string_view kIndexSuffix = ".index";
// What begins with a dot is hidden: files that are being written among them.
constexpr char kHidden = '.';

// "ckpt-10" as ("ckpt-", 2 digits, "10"), which sorts numbers by their size.
std::tuple<std::string_view, size_t, std::string_view> sort_key(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  const std::string_view number = name.substr(digits);
  return {name.substr(0, digits), number.size(), number};
}

}  // namespace

std::optional<std::string> checkpoint_prefix(internal::FileSystem& files, const std::string& path) {
  if (files.exists(internal::bundle_index_path(path))) return path;
  if (path.ends_with(kIndexSuffix) && files.exists(path)) {
    return path.substr(0, path.size() - kIndexSuffix.size());
  }
  try {
    files.list(path);
  } catch (const NotFoundError&) {
    throw NotFoundError(str(quoted(path), " is neither a checkpoint (there is no ",
                            quoted(internal::bundle_index_path(path)), ") nor a directory"));
  }
  return std::nullopt;
}

std::string require_checkpoint(internal::FileSystem& files, const std::string& path) {
  if (auto prefix = checkpoint_prefix(files, path)) return *std::move(prefix);
  throw NotFoundError(str(quoted(path), " is a directory; name one checkpoint in it, as ",
                          quoted(internal::join_path(path, "ckpt-1"))));
}

std::vector<std::string> checkpoints_in(internal::FileSystem& files, const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& name : files.list(directory)) {
    if (!name.ends_with(kIndexSuffix) || name.starts_with(kHidden)) continue;
    names.push_back(name.substr(0, name.size() - kIndexSuffix.size()));
  }
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return sort_key(a) < sort_key(b); });
  for (std::string& name : names) name = internal::join_path(directory, name);
  return names;
}

std::optional<int64_t> time_written(const std::string& prefix) {
  struct stat found = {};
  if (::stat(internal::bundle_index_path(prefix).c_str(), &found) != 0) return std::nullopt;
  return found.st_mtime;
}

std::string time_text(int64_t seconds) {
  constexpr int64_t kYear10000 = 253'402'300'800;
  if (std::abs(seconds) >= kYear10000) return internal::str(seconds);
  return internal::utc_text(std::chrono::sys_seconds(std::chrono::seconds(seconds)));
}

}  // namespace cohort::tools
