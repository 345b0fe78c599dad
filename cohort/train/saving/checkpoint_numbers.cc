#include "cohort/train/saving/checkpoint_numbers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"

namespace cohort::internal {
namespace {

struct Numbered {
  std::string name;  // "ckpt-12"
  std::string base;  // "ckpt"
  int64_t number = 0;
};

std::optional<Numbered> parse_name(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == name.npos || dash == 0 || dash + 1 == name.size()) return std::nullopt;
  Numbered result{std::string(name), std::string(name.substr(0, dash))};
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dash + 1, end, result.number);
  if (error != std::errc() || stop != end || result.number < 0) return std::nullopt;
  return result;
}

// Highest number first.
std::vector<Numbered> list_numbered(FileSystem& files, const std::string& directory) {
  constexpr std::string_view kSuffix = ".index";
  std::vector<Numbered> found;
  std::vector<std::string> names;
  try {
    names = files.list(directory);
  } catch (const NotFoundError&) {  // nothing was saved there
  }
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix) || name.starts_with(kTemporaryPrefix)) continue;
    auto parsed = parse_name(std::string_view(name).substr(0, name.size() - kSuffix.size()));
    if (parsed) found.push_back(*std::move(parsed));
  }
  std::sort(found.begin(), found.end(),
            [](const Numbered& a, const Numbered& b) { return a.number > b.number; });
  return found;
}

}  // namespace

std::vector<std::string> numbered_checkpoints(FileSystem& files, const std::string& prefix) {
  std::vector<std::string> paths;
  for (const Numbered& one : list_numbered(files, parent_directory(prefix))) {
    if (one.base != base_name(prefix)) continue;
    paths.push_back(join_path(parent_directory(prefix), one.name));
  }
  return paths;
}

std::vector<std::string> earlier_checkpoints(FileSystem& files, const std::string& path) {
  const auto latest = parse_name(base_name(path));
  if (!latest) return {};
  std::vector<std::string> paths;
  for (const Numbered& one : list_numbered(files, parent_directory(path))) {
    if (one.base != latest->base || one.number >= latest->number) continue;
    paths.push_back(join_path(parent_directory(path), one.name));
  }
  return paths;
}

std::string highest_checkpoint(FileSystem& files, const std::string& directory) {
  const std::vector<Numbered> found = list_numbered(files, directory);
  return found.empty() ? "" : join_path(directory, found.front().name);
}

}  // namespace cohort::internal
