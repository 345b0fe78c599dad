#include "cohort/ops/lookup/text_lines.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/text_chunks.h"

namespace cohort::internal {
namespace {

std::string read_bytes(const std::string& path, FileSystem& files) {
  const std::unique_ptr<ReadableFile> file = open_within(files, path, kDefaultFileDeadline);
  std::string bytes;
  try {
    bytes.reserve(file->size());
  } catch (const std::exception&) {  // bad_alloc, length_error
    throw ResourceExhaustedError(
        str(quoted(path), " has ", file->size(), " bytes, for which there is not enough memory"));
  }
  file->scan(0, file->size(), [&](std::string_view block) { bytes += block; });
  return bytes;
}

}  // namespace

TextLines read_text_lines(const std::string& path, FileSystem& files) {
  TextLines text;
  text.bytes = std::make_shared<const std::string>(read_bytes(path, files));
  const std::string_view bytes = *text.bytes;
  text.lines.reserve(static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1);
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const size_t next = end + 1;
    if (end > begin && bytes[end - 1] == '\r') --end;
    text.lines.push_back(bytes.substr(begin, end - begin));
    if (end == begin) {
      throw InvalidArgumentError(str(line_place(path, text, text.lines.size() - 1),
                                     " is empty; a table's file has one entry a line"));
    }
    begin = next;
  }
  return text;
}

std::string line_place(const std::string& path, const TextLines& text, size_t line) {
  return line_place(path, line,
                    static_cast<uint64_t>(text.lines[line].data() - text.bytes->data()));
}

}  // namespace cohort::internal
