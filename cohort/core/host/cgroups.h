// Reads the limits of the control groups (cgroups) that this process is in: containers, Slurm jobs
// and systemd units limit processor time and memory by them. Both versions of the interface are
// read.
//
//   const std::optional<CpuQuota> quota = Cgroups().cpu_quota();
//   if (quota) threads = cores_under(*quota, threads);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort::internal {

// Processor time for all processes of a group together.
struct CpuQuota {
  double cores = 0;  // seconds of processor time a second; 0.5 is half a core
  // Names the group whose quota this is: the same text in all processes that share it.
  std::string group = "";
};

// How many threads can work at once on at most `cores` cores: 0.5 cores are one thread. At least 1.
int cores_under(const std::optional<CpuQuota>& quota, int cores);

// How many of `cores` one of `sharers` processes has if they divide the quota: at least 1, and 0 if
// `cores` is 0.
int share_of_quota(const std::optional<CpuQuota>& quota, int sharers, int cores);

// Thread safety: any thread, as of std::vector. Nothing throws: what cannot be read is no limit.
class Cgroups {
 public:
  // `proc`: the folder that says which groups a process is in, and where they are mounted.
  explicit Cgroups(const std::string& proc = "/proc/self");

  // The smallest quota of the process's group and of the groups around it that are mounted;
  // nullopt: no limit.
  std::optional<CpuQuota> cpu_quota() const;
  // The least limit of the same groups, in bytes; nothing: no limit.
  std::optional<int64_t> memory_limit() const;
  // How many processes of this process's own group the kernel has ended for want of memory; nothing
  // where it does not count them.
  std::optional<int64_t> oom_kills() const;

 private:
  enum class Version { kOne, kTwo };
  struct Place {
    Version version;
    std::vector<std::string> folders;  // of the process's group, then of each group around it
  };

  std::vector<Place> cpu_;
  std::vector<Place> memory_;
};

}  // namespace cohort::internal
