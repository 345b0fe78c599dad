#include "cohort/core/host/cgroups.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool has_part(const std::string& list, std::string_view part) {
  const std::vector<std::string> parts = parts_of(list, ',');
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

// "\040" is a space in a path of mountinfo.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = std::string_view(text).substr(i + 1, 3);
    const bool is_octal =
        digits.size() == 3 && digits.find_first_not_of("01234567") == std::string_view::npos;
    if (text[i] != '\\' || !is_octal) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
    i += 3;
  }
  return plain;
}

// A line of mountinfo: "30 23 0:26 ROOT POINT rw,nosuid shared:4 - cgroup2 cgroup2 rw,cpu".
struct Mount {
  std::string root;   // the group that is seen at `point`
  std::string point;  // a folder
  std::string type;
  std::string options;  // version 1: with the controllers
};

std::vector<Mount> cgroup_mounts(const std::string& proc) {
  std::vector<Mount> mounts;
  for (const std::string& line : lines_of(proc + "/mountinfo")) {
    const std::vector<std::string> fields = parts_of(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 5 || fields.end() - dash < 4) continue;
    if (!dash[1].starts_with("cgroup")) continue;
    mounts.push_back({without_escapes(fields[3]), without_escapes(fields[4]), dash[1], dash[3]});
  }
  return mounts;
}

// The folders of group `group` and of those around it, up to the mount point.
std::vector<std::string> folders_of(const Mount& mount, std::string group) {
  const bool is_below =
      mount.root == "/" || group == mount.root || group.starts_with(mount.root + "/");
  if (mount.root != "/") group = is_below ? group.substr(mount.root.size()) : "";
  // A group outside of the namespace is "/../..": only the top of the mounted groups can be of use
  // then.
  if (!group.starts_with('/') || group.find("..") != std::string::npos) group.clear();
  while (group.ends_with('/')) group.pop_back();
  std::vector<std::string> folders;
  while (!group.empty()) {
    folders.push_back(mount.point + group);
    group.resize(group.rfind('/'));
  }
  folders.push_back(mount.point);
  return folders;
}

// The first number of a file, or that after `key`; nothing where there is none: "max", or no file.
std::optional<int64_t> number_in(const std::string& path, std::string_view key = "") {
  for (const std::string& line : lines_of(path)) {
    const std::vector<std::string> words = parts_of(line, ' ');
    if (key.empty()) return parse_number<int64_t>(words[0]);
    if (words.size() == 2 && words[0] == key) return parse_number<int64_t>(words[1]);
  }
  return std::nullopt;
}

std::optional<double> cores_of_version_one(const std::string& folder) {
  const std::optional<int64_t> quota = number_in(folder + "/cpu.cfs_quota_us");
  const std::optional<int64_t> period = number_in(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// "50000 100000"; "max 100000" where there is no limit.
std::optional<double> cores_of_version_two(const std::string& folder) {
  const std::vector<std::string> lines = lines_of(folder + "/cpu.max");
  const std::vector<std::string> words = parts_of(lines.empty() ? "" : lines[0], ' ');
  if (words.size() != 2) return std::nullopt;
  const std::optional<int64_t> quota = parse_number<int64_t>(words[0]);
  const std::optional<int64_t> period = parse_number<int64_t>(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::string identity_of(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return folder;
  return str(status.st_dev, ':', status.st_ino);
}

}  // namespace

int cores_under(const std::optional<CpuQuota>& quota, int cores) {
  if (quota && quota->cores < cores) cores = static_cast<int>(std::ceil(quota->cores));
  return std::max(1, cores);
}

int share_of_quota(const std::optional<CpuQuota>& quota, int sharers, int cores) {
  if (!quota || cores == 0) return cores;
  const int whole = cores_under(quota, cores * std::max(1, sharers));
  return std::clamp(whole / std::max(1, sharers), 1, cores);
}

Cgroups::Cgroups(const std::string& proc) {
  const std::vector<Mount> mounts = cgroup_mounts(proc);
  for (const std::string& line : lines_of(proc + "/cgroup")) {  // "4:cpu,cpuacct:/docker/4711"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const auto add = [&](std::string_view controller, std::vector<Place>& places) {
      const Version version = controllers.empty() ? Version::kTwo : Version::kOne;
      if (version == Version::kOne && !has_part(controllers, controller)) return;
      for (const Mount& mount : mounts) {
        const bool fits = version == Version::kTwo
                              ? mount.type == "cgroup2"
                              : mount.type == "cgroup" && has_part(mount.options, controller);
        if (!fits) continue;
        places.push_back({version, folders_of(mount, group)});
        return;
      }
    };
    add("cpu", cpu_);
    add("memory", memory_);
  }
}

std::optional<CpuQuota> Cgroups::cpu_quota() const {
  std::optional<CpuQuota> least;
  for (const Place& place : cpu_) {
    for (const std::string& folder : place.folders) {
      const std::optional<double> cores = place.version == Version::kTwo
                                              ? cores_of_version_two(folder)
                                              : cores_of_version_one(folder);
      if (!cores || (least && least->cores <= *cores)) continue;
      least = {.cores = *cores, .group = identity_of(folder)};
    }
  }
  return least;
}

std::optional<int64_t> Cgroups::memory_limit() const {
  // Version 1 has no word for no limit, but a number near the largest.
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  std::optional<int64_t> least;
  for (const Place& place : memory_) {
    const char* const name =
        place.version == Version::kTwo ? "/memory.max" : "/memory.limit_in_bytes";
    for (const std::string& folder : place.folders) {
      const std::optional<int64_t> bytes = number_in(folder + name);
      if (bytes && *bytes < kNoLimit && (!least || *bytes < *least)) least = bytes;
    }
  }
  return least;
}

std::optional<int64_t> Cgroups::oom_kills() const {
  for (const Place& place : memory_) {
    const char* const name =
        place.version == Version::kTwo ? "/memory.events" : "/memory.oom_control";
    const std::optional<int64_t> kills = number_in(place.folders.front() + name, "oom_kill");
    if (kills) return kills;
  }
  return std::nullopt;
}

}  // namespace cohort::internal
