// A log that another process writes: its last lines, and waiting for a line of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>

namespace cohort::internal {

struct LogWait {
  std::string path;
  int64_t offset = 0;       // where to start reading
  std::regex pattern = {};  // what some part of the line must match
  int pidfd = -1;           // of the writer; negative: it has ended
  std::chrono::steady_clock::time_point deadline = {};
};

enum class LogWaitEnd { kFound, kWriterEnded, kDeadline };

struct LogWaitResult {
  LogWaitEnd end = LogWaitEnd::kFound;
  std::string line;  // without its newline, if found
};

// Returns at the first complete line that matches, when the writer has ended without one, or at the
// deadline. Errors: NotFound (no such file), ResourceExhausted (no inotify).
LogWaitResult wait_for_log_line(const LogWait& wait);

// The bytes of the file from `offset` on, at most its last `max_bytes`; "" if it cannot be read.
std::string read_log(const std::string& path, int64_t offset, int64_t max_bytes);
// The last `count` lines of the file.
std::string last_lines(const std::string& path, int count);

}  // namespace cohort::internal
