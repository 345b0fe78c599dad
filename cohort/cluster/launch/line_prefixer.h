// Marks the lines of a task's output with the task's name, so that several tasks can write to one
// terminal.
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal {

// Thread safety: none.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The complete lines among what has come, each with the prefix. A line without an end is kept;
  // one longer than 64 KiB goes out in pieces.
  std::string add(std::string_view bytes);
  // Returns the incomplete line at the end, as a line.
  std::string finish();

 private:
  std::string prefix_;
  std::string line_;  // its beginning
};

}  // namespace cohort::internal
