#include "cohort/core/host/process_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "cohort/core/host/host_identity.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

struct ProcessState {
  bool ends = false;  // it runs no more
  std::string start;  // when it began, in ticks since the boot
};

// "4242 (name) S 1 ..." of /proc/PID/stat: the third field is the state, the 22nd the start.
std::optional<ProcessState> parse_stat(std::string_view text) {
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  ProcessState state{.ends = text[0] == 'Z' || text[0] == 'X', .start = ""};
  for (int field = 3; field < 22; ++field) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    text.remove_prefix(space + 1);
  }
  state.start = std::string(text.substr(0, text.find(' ')));
  return state;
}

struct Look {
  std::optional<ProcessState> state;
  bool is_absent = false;
};

Look look_at(const std::string& process) {
  const UniqueFd file(::open(str("/proc/", process, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {.state = std::nullopt, .is_absent = errno == ENOENT};
  std::array<char, 1024> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return {.state = std::nullopt, .is_absent = errno == ESRCH};
  return {.state = parse_stat({text.data(), static_cast<size_t>(size)})};
}

// What processes must have in common so that one sees the other by its pid.
const std::string& own_space() {
  static const std::string space = [] {
    std::array<char, 64> text{};
    const ssize_t size = ::readlink("/proc/self/ns/pid", text.data(), text.size());
    if (size <= 0) return std::string();
    return str(host_identity(), ' ', std::string(text.data(), static_cast<size_t>(size)));
  }();
  return space;
}

}  // namespace

std::string process_place() {
  const Look own = look_at("self");
  if (own_space().empty() || !own.state) return "";
  return str(own_space(), " process ", ::getpid(), ' ', own.state->start);
}

bool has_ended(const std::string& place) {
  const std::string prefix = own_space() + " process ";
  if (own_space().empty() || !place.starts_with(prefix)) return false;
  const size_t space = place.find(' ', prefix.size());
  if (space == std::string::npos) return false;
  const std::string pid = place.substr(prefix.size(), space - prefix.size());
  if (!parse_number<int>(pid)) return false;
  const Look look = look_at(pid);
  if (!look.state) return look.is_absent;
  return look.state->ends || look.state->start != place.substr(space + 1);
}

}  // namespace cohort::internal
