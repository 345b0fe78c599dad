#include "cohort/data/records/glob.h"

#include <fnmatch.h>

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

bool has_wildcard(const std::string& name) {
  return name.find_first_of("*?[\\") != std::string::npos;
}

std::vector<std::string> names_in(FileSystem& files, const std::string& directory) {
  try {
    return files.list(directory.empty() ? "." : directory);
  } catch (const NotFoundError&) {  // also: it is a file
    return {};
  } catch (const PermissionDeniedError&) {
    return {};
  }
}

std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.ends_with('/') ? directory + name : directory + "/" + name;
}

}  // namespace

std::vector<std::string> matching_paths(FileSystem& files, const std::string& pattern) {
  // Level by level: the paths that match what was seen of the pattern.
  std::vector<std::string> paths = {pattern.starts_with('/') ? "/" : ""};
  for (size_t begin = 0; begin < pattern.size();) {
    const size_t end = std::min(pattern.find('/', begin), pattern.size());
    const std::string name = pattern.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    std::vector<std::string> matches;
    for (const std::string& path : paths) {
      if (!has_wildcard(name)) {
        matches.push_back(joined(path, name));
        continue;
      }
      for (const std::string& found : names_in(files, path)) {
        if (::fnmatch(name.c_str(), found.c_str(), FNM_PERIOD) == 0) {
          matches.push_back(joined(path, found));
        }
      }
    }
    paths = std::move(matches);
  }
  std::erase_if(paths,
                [&](const std::string& path) { return path.empty() || !files.exists(path); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace cohort::internal
