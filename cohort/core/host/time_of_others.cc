#include "cohort/core/host/time_of_others.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "cohort/core/host/cgroups.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {
namespace {

// The lines of the cores come first; those of hundreds fit.
constexpr size_t kStatBytes = size_t{64} << 10;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// The number at the beginning of `text`, which loses it and the spaces before it.
std::optional<int64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<double> busy_seconds(std::string_view stat, const cpu_set_t& cores,
                                   double ticks_per_second) {
  // user, nice, system, idle, iowait, irq, softirq, steal; the time of guests is within user.
  constexpr std::array<bool, 8> kBusy{true, true, true, false, false, true, true, true};
  int64_t ticks = 0;
  int found = 0;
  for (; stat.starts_with("cpu"); stat.remove_prefix(std::min(stat.find('\n') + 1, stat.size()))) {
    std::string_view line = stat.substr(0, stat.find('\n'));
    if (line.size() == stat.size()) break;  // cut off
    line.remove_prefix(3);
    if (line.starts_with(' ')) continue;  // all cores together
    const std::optional<int64_t> core = take_number(line);
    if (!core) return std::nullopt;
    if (*core >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(*core), &cores)) continue;
    ++found;
    for (const bool is_busy : kBusy) {
      const std::optional<int64_t> number = take_number(line);
      if (!number) return std::nullopt;
      if (is_busy) ticks += *number;
    }
  }
  if (found == 0 || found < CPU_COUNT(&cores)) return std::nullopt;
  return static_cast<double>(ticks) / ticks_per_second;
}

std::optional<double> seconds_for_others() {
  static const bool has_quota = Cgroups().cpu_quota().has_value();
  static const UniqueFd stat(::open("/proc/stat", O_RDONLY | O_CLOEXEC));
  cpu_set_t cores;
  if (has_quota || ::sched_getaffinity(::getpid(), sizeof cores, &cores) != 0) return std::nullopt;
  std::string text(kStatBytes, '\0');
  const ssize_t size = ::pread(stat.get(), text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  const std::optional<double> busy = busy_seconds({text.data(), static_cast<size_t>(size)}, cores,
                                                  static_cast<double>(::sysconf(_SC_CLK_TCK)));
  rusage own{};
  if (!busy || ::getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  return *busy - seconds(own.ru_utime) - seconds(own.ru_stime);
}

}  // namespace cohort::internal
