#include "cohort/testing/log_file.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr int64_t kTailBytes = 64 << 10;

// Reads a growing file line by line.
class LineReader {
 public:
  LineReader(const std::string& path, int64_t offset) : file_(path, std::ios::binary) {
    if (!file_) throw NotFoundError(str("cannot read the log ", path));
    file_.seekg(offset);
  }

  // The next complete line without its newline.
  std::optional<std::string> next() {
    std::array<char, 4096> block;
    for (;;) {
      if (const size_t end = pending_.find('\n'); end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return line;
      }
      file_.clear();  // the end that was seen before may have moved
      file_.read(block.data(), block.size());
      if (file_.gcount() == 0) return std::nullopt;
      pending_.append(block.data(), static_cast<size_t>(file_.gcount()));
    }
  }

 private:
  std::ifstream file_;
  std::string pending_;
};

// Tells when a file changes.
class FileWatch {
 public:
  explicit FileWatch(const std::string& path)
      : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (!inotify_.valid() || ::inotify_add_watch(inotify_.get(), path.c_str(), IN_MODIFY) < 0) {
      throw ResourceExhaustedError(str("cannot watch ", path, ": ", errno_text(errno)));
    }
  }
  int fd() const { return inotify_.get(); }
  void clear_events() const {
    std::array<char, 4096> events;
    while (::read(inotify_.get(), events.data(), events.size()) > 0) {
    }
  }

 private:
  UniqueFd inotify_;
};

}  // namespace

LogWaitResult wait_for_log_line(const LogWait& wait) {
  LineReader reader(wait.path, wait.offset);
  const FileWatch watch(wait.path);  // before the first read, so that no change is missed
  for (bool writer_ended = wait.pidfd < 0;;) {
    while (auto line = reader.next()) {
      if (std::regex_search(*line, wait.pattern)) return {LogWaitEnd::kFound, *line};
    }
    if (writer_ended) return {LogWaitEnd::kWriterEnded, ""};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        wait.deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {LogWaitEnd::kDeadline, ""};
    std::array<pollfd, 2> fds = {{{watch.fd(), POLLIN, 0}, {wait.pidfd, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    watch.clear_events();
    writer_ended = (fds[1].revents & POLLIN) != 0;  // its last lines are read once more
  }
}

std::string read_log(const std::string& path, int64_t offset, int64_t max_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const int64_t end = file.tellg();
  const int64_t begin = std::max(offset, end - max_bytes);
  if (begin >= end) return "";
  std::string bytes(static_cast<size_t>(end - begin), '\0');
  file.seekg(begin);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

std::string last_lines(const std::string& path, int count) {
  const std::string text = read_log(path, 0, kTailBytes);
  size_t begin = text.size();
  for (int line = 0; line < count && begin > 0; ++line) {
    // A newline that ends the text belongs to the line before it.
    const size_t newline = begin < 2 ? std::string::npos : text.rfind('\n', begin - 2);
    begin = newline == std::string::npos ? 0 : newline + 1;
  }
  return text.substr(begin);
}

}  // namespace cohort::internal
