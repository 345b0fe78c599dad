#include "cohort/core/files/file_system.h"

namespace cohort::internal {
namespace {

// The path without the slashes at its end, except for the root's.
std::string_view trimmed(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

std::string parent_directory(std::string_view path) {
  path = trimmed(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(trimmed(path.substr(0, slash + 1)));
}

std::string base_name(std::string_view path) {
  path = trimmed(path);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

}  // namespace cohort::internal
