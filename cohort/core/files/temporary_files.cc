#include "cohort/core/files/temporary_files.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/host/random_hex.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostNameOfTemporary = 150;  // so that no prefix makes a name too long

// A process, for all who may look at its files.
struct FileWriter {
  uint32_t place = 0;  // of the host and its table of processes; containers have their own
  int64_t pid = 0;
  uint64_t seen = 0;  // when it lived: hundredths of a second since the host was started
};

FileWriter this_writer() {
  char processes[64] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", processes, sizeof(processes) - 1);
  const std::string place = str(host_name(), '\n', length > 0 ? processes : "");
  std::timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hundredths =
      static_cast<uint64_t>(now.tv_sec) * 100 + static_cast<uint64_t>(now.tv_nsec) / 10'000'000;
  return {crc32c(place), getpid(), hundredths};
}

const FileWriter& own_writer() {
  static const FileWriter writer = this_writer();
  return writer;
}

template <class Number>
bool take_number(std::string_view& text, int base, char end, Number& number) {
  const char* stop = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), stop, number, base);
  if (error != std::errc() || rest == stop || *rest != end) return false;
  text.remove_prefix(static_cast<size_t>(rest - text.data()) + 1);
  return true;
}

// The writer that a name beginning with `prefix` carries; nullopt if it carries none.
std::optional<FileWriter> parse_writer(std::string_view name, std::string_view prefix) {
  name.remove_prefix(prefix.size());
  FileWriter writer;
  if (!take_number(name, 16, '.', writer.place) || !take_number(name, 10, '.', writer.pid) ||
      !take_number(name, 16, '-', writer.seen) || writer.pid <= 0) {
    return std::nullopt;
  }
  return writer;
}

// Whether the process of that number is the one that was seen, and not a later one.
bool still_runs(const FileWriter& writer) {
  std::ifstream file(str("/proc/", writer.pid, "/stat"));
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) {  // it is gone, or hidden
    return ::kill(static_cast<pid_t>(writer.pid), 0) == 0 || errno != ESRCH;
  }
  const std::vector<std::string_view> fields =
      split_words(std::string_view(stat).substr(name_end + 1));
  if (!fields.empty() && (fields[0] == "Z" || fields[0] == "X")) return false;
  constexpr size_t kStartTime = 19;  // in clock ticks since the host was started
  if (fields.size() <= kStartTime) return true;
  const auto started = parse_number<int64_t>(fields[kStartTime]);
  if (!started) return true;
  return static_cast<uint64_t>(*started) * 100 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)) <=
         writer.seen;
}

std::string path_of(std::string_view prefix, const std::string& directory, std::string_view name) {
  const FileWriter& own = own_writer();
  if (name.size() > kMostNameOfTemporary) name.remove_prefix(name.size() - kMostNameOfTemporary);
  return join_path(directory, str(prefix, std::hex, own.place, '.', std::dec, own.pid, '.',
                                  std::hex, own.seen, '-', name));
}

}  // namespace

std::string temporary_path(const std::string& directory, std::string_view name) {
  return path_of(kTemporaryPrefix, directory, name);
}

bool is_left_over(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return false;
  const std::optional<FileWriter> writer = parse_writer(name, kTemporaryPrefix);
  const FileWriter& own = own_writer();
  if (!writer || writer->place != own.place || writer->pid == own.pid) return true;
  return !still_runs(*writer);
}

std::string unlocked_temporary_path(const std::string& directory, std::string_view name) {
  return path_of(kUnlockedPrefix, directory, str(name, '.', random_hex(8)));
}

void remove_tree(FileSystem& files, const std::string& path) noexcept {
  try {
    files.remove(path);
    return;
  } catch (const std::exception&) {  // a directory, say; a link to one is gone already
  }
  try {
    for (const std::string& name : files.list(path)) remove_tree(files, join_path(path, name));
    files.remove_directory(path);
  } catch (const std::exception&) {  // another process was first, say
  }
}

void remove_unlocked_left_overs(FileSystem& files, const std::string& directory) noexcept {
  const auto has_ended = [](const FileWriter& writer) {
    const FileWriter& own = own_writer();
    if (writer.place != own.place) return false;
    return writer.pid == own.pid ? writer.seen != own.seen : !still_runs(writer);
  };
  try {
    for (const std::string& name : files.list(directory)) {
      if (!name.starts_with(kUnlockedPrefix)) continue;
      const std::optional<FileWriter> writer = parse_writer(name, kUnlockedPrefix);
      if (!writer || !has_ended(*writer)) continue;
      remove_tree(files, join_path(directory, name));
    }
  } catch (const std::exception&) {  // nobody reads them
  }
}

}  // namespace cohort::internal
