#include "cohort/ops/vocabulary/text_chunks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::string line_place(const std::string& path, uint64_t line, uint64_t offset) {
  return str(quoted(path), ", line ", line + 1, " (byte offset ", offset, ")");
}

TextChunks::TextChunks(const ReadableFile& file, std::string path,
                       const std::function<void(std::string_view)>& visit)
    : file_(file),
      path_(std::move(path)),
      size_(file.size()),
      first_lines_((size_ + kTextChunk - 1) / kTextChunk + 1) {
  // The sums are taken below: until then it is how many lines begin in each chunk.
  if (size_ > 0) first_lines_[0] = 1;
  BlockChecksums checksums;
  uint64_t offset = 0;
  file.scan(0, size_, [&](std::string_view bytes) {
    visit(bytes);
    checksums.add(bytes);
    count(bytes, offset);
    offset += bytes.size();
  });
  checksums_ = checksums.finish();
  uint64_t lines = 0;
  for (uint64_t& first : first_lines_) lines += std::exchange(first, lines);
}

// A line begins behind each \n but one that the text ends with.
void TextChunks::count(std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const uint64_t chunk = offset / kTextChunk;
    const uint64_t end = std::min((chunk + 1) * kTextChunk, size_);
    const uint64_t some = std::min<uint64_t>(bytes.size(), end - offset);
    first_lines_[chunk] +=
        static_cast<uint64_t>(std::count(bytes.begin(), bytes.begin() + some, '\n'));
    offset += some;
    if (offset == end && bytes[some - 1] == '\n') {
      --first_lines_[chunk];
      if (end < size_) ++first_lines_[chunk + 1];
    }
    bytes.remove_prefix(some);
  }
}

// Into `buffer`, with the byte before the chunk, if there is one, and the end of its last line.
void TextChunks::read_chunk(uint64_t chunk, std::string& buffer) const {
  const uint64_t begin = chunk * kTextChunk, end = std::min(begin + kTextChunk, size_);
  const uint64_t before = chunk > 0 ? 1 : 0;
  buffer.resize(before + end - begin);
  file_.read(begin - before, buffer.data(), buffer.size());
  BlockChecksums found;
  found.add(std::string_view(buffer).substr(before));
  const std::vector<uint32_t> checksums = found.finish();
  if (!std::equal(checksums.begin(), checksums.end(),
                  checksums_.begin() + static_cast<ptrdiff_t>(begin / kIndexBlock))) {
    throw FailedPreconditionError(str(quoted(path_), " was changed while it was read; write a ",
                                      "vocabulary under another name and rename it"));
  }
  uint64_t piece = 1024;
  for (uint64_t next = end; next < size_ && buffer.back() != '\n'; piece *= 2) {
    const size_t old = buffer.size();
    const uint64_t some = std::min(piece, size_ - next);
    buffer.resize(old + some);
    file_.read(next, buffer.data() + old, some);
    const size_t line_end = buffer.find('\n', old);
    if (line_end != buffer.npos) buffer.resize(line_end + 1);
    next += some;
  }
}

void TextChunks::visit_lines(uint64_t chunk, std::string& buffer,
                             FunctionRef<void(const Line&)> visit) const {
  uint64_t number = first_lines_[chunk];
  const uint64_t last = first_lines_[chunk + 1];
  if (number == last) return;
  read_chunk(chunk, buffer);
  const std::string_view bytes = buffer;
  const uint64_t base = chunk * kTextChunk - (chunk > 0 ? 1 : 0);
  size_t begin = chunk > 0 ? bytes.find('\n') + 1 : 0;
  for (; number < last; ++number) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    visit({number, base + begin, bytes.substr(begin, end - begin)});
    begin = end + 1;
  }
}

std::string TextChunks::rest_of_line(uint64_t offset) const {
  std::string rest;
  for (uint64_t piece = 256; offset < size_; piece *= 2) {
    const size_t old = rest.size();
    const uint64_t some = std::min(piece, size_ - offset);
    rest.resize(old + some);
    file_.read(offset, rest.data() + old, some);
    const size_t end = rest.find('\n', old);
    if (end != rest.npos) return rest.substr(0, end);
    offset += some;
  }
  return rest;
}

}  // namespace cohort::internal
