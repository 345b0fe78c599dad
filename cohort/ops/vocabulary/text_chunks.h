// A text's lines, read in chunks by any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/function_ref.h"
#include "cohort/ops/vocabulary/index_layout.h"

namespace cohort::internal {

inline constexpr uint64_t kTextChunk = uint64_t{1} << 20;  // whole blocks of the index

// "'vocabulary.txt', line 3 (byte offset 12)", for messages. `line` counts from 0.
std::string line_place(const std::string& path, uint64_t line, uint64_t offset);

// What one reading of a text found out. Thread safety: immutable.
class TextChunks {
 public:
  // Reads the text once, from its beginning to its end, and gives each block to `visit`.
  // Errors: those of reading.
  TextChunks(const ReadableFile& file, std::string path,
             const std::function<void(std::string_view)>& visit);

  const std::string& path() const { return path_; }
  uint64_t lines() const { return first_lines_.back(); }
  uint64_t num_chunks() const { return first_lines_.size() - 1; }
  // The number of the first line that begins in the chunk.
  uint64_t first_line(uint64_t chunk) const { return first_lines_[chunk]; }

  struct Line {
    uint64_t number;
    uint64_t offset;
    std::string_view text;  // up to its \n
  };
  // The lines that begin in the chunk, in order. `buffer` is the caller's, for all its chunks.
  // Memory: a chunk and its last line.
  // Errors: FailedPrecondition (the text is not what it was), those of reading and of `visit`.
  void visit_lines(uint64_t chunk, std::string& buffer, FunctionRef<void(const Line&)> visit) const;
  // The bytes from `offset` to the end of the line.
  std::string rest_of_line(uint64_t offset) const;
  // The checksums of the text's blocks.
  const std::vector<uint32_t>& checksums() const { return checksums_; }

 private:
  void count(std::string_view bytes, uint64_t offset);
  void read_chunk(uint64_t chunk, std::string& buffer) const;

  const ReadableFile& file_;
  const std::string path_;
  const uint64_t size_;
  std::vector<uint64_t> first_lines_;  // at last: how many there are
  std::vector<uint32_t> checksums_;
};

}  // namespace cohort::internal
