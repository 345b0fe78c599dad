// A text file's lines, in memory once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

struct TextLines {
  std::shared_ptr<const std::string> bytes;  // of the whole file: the lines are views of it
  std::vector<std::string_view> lines;
};

// Lines end with \n or \r\n; the last one may lack it.
// Errors: NotFound and the others of opening and reading (DeadlineExceeded: a server of the file
// does not answer); InvalidArgument (an empty line: names the
// file, the line and its byte offset), ResourceExhausted (larger than memory).
TextLines read_text_lines(const std::string& path, FileSystem& files = posix_file_system());

// "'vocabulary.txt', line 3 (byte offset 12)", for messages. `line` counts from 0.
std::string line_place(const std::string& path, const TextLines& text, size_t line);

}  // namespace cohort::internal
