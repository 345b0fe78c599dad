#include "cohort/data/records/glob.h"

#include <fnmatch.h>

#include <algorithm>

#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

bool has_wildcard(const std::string& name) {
  return name.find_first_of("*?[\\") != std::string::npos;
}

std::vector<std::string> names_in(FileSystem& files, const std::string& path,
                                  std::optional<std::string>* denied) {
  const std::string directory = path.empty() ? "." : path;
  try {
    return files.list(directory);
  } catch (const NotFoundError&) {  // also: it is a file
    return {};
  } catch (const PermissionDeniedError&) {
    if (denied && !*denied) *denied = directory;
    return {};
  }
}

std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.ends_with('/') ? directory + name : directory + "/" + name;
}

}  // namespace

std::vector<std::string> matching_paths(FileSystem& files, const std::string& pattern,
                                        std::optional<std::string>* denied) {
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
      const ClassicLocale classic;
      for (const std::string& found : names_in(files, path, denied)) {
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

void throw_no_match(const std::string& patterns, const std::optional<std::string>& denied) {
  if (!denied) throw NotFoundError(str("list_files: no file matches ", patterns));
  throw PermissionDeniedError(str("list_files: no file was found that matches ", patterns,
                                  ", and directory ", quoted(*denied),
                                  " may not be listed; give this user the right to read it"));
}

}  // namespace cohort::internal
