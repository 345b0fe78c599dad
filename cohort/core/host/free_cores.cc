#include "cohort/core/host/free_cores.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cohort/core/host/cgroups.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWhileFree{5};
constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{1000};

std::optional<int> count_running_threads() {
  static const UniqueFd loadavg(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text;
  const ssize_t size = ::pread(loadavg.get(), text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  return running_threads({text.data(), static_cast<size_t>(size)});
}

}  // namespace

bool FreeCores::are_free(Time now) {
  const std::lock_guard lock(mutex_);
  if (now < next_count_) return free_;
  const std::optional<int> running = count_running_();
  free_ = running && *running <= cores_;
  pause_ = free_ ? milliseconds(0)
                 : std::clamp<std::chrono::nanoseconds>(2 * pause_, kFirstPause, kLongestPause);
  next_count_ = now + (free_ ? kWhileFree : pause_);
  return free_;
}

FreeCores& host_cores() {
  // Never destroyed: threads that ask may outlive the program's statics.
  // A thread that polls under a quota uses it up, and then all of the group's threads stand still.
  static auto* const cores = new FreeCores(
      cores_under(Cgroups().cpu_quota(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))),
      count_running_threads);
  return *cores;
}

std::optional<int> running_threads(std::string_view loadavg) {
  for (int field = 0; field < 3; ++field) {
    const size_t space = loadavg.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    loadavg.remove_prefix(space + 1);
  }
  int running = 0;
  const auto [end, error] =
      std::from_chars(loadavg.data(), loadavg.data() + loadavg.size(), running);
  if (error != std::errc() || end == loadavg.data() + loadavg.size() || *end != '/') {
    return std::nullopt;
  }
  return running;
}

}  // namespace cohort::internal
