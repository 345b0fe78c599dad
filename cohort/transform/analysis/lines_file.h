// A text file that is written line by line, under a temporary name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "cohort/transform/analysis/accumulator.h"

namespace cohort::internal {

// Thread safety: none.
class LinesFile {
 public:
  // Errors of all: FileSystem's; with ResourceExhausted (the disk is full) nothing is left, and the
  // text says what to do.
  LinesFile(FileSystem& files, const std::string& directory);
  // Removes a file that is not finished.
  ~LinesFile();
  LinesFile(const LinesFile&) = delete;
  LinesFile& operator=(const LinesFile&) = delete;

  // `line` has no newline.
  void add(std::string_view line);
  int64_t lines() const { return lines_; }
  // Writes all to the device.
  AnalysisResult::TextFile finish();

 private:
  void write_buffer();

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  int64_t lines_ = 0;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace cohort::internal
