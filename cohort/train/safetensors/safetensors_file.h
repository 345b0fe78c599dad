// Safetensors files as a whole: read tensor by tensor, and written in one step.
//
//   SafetensorsReader file(files.open("model.safetensors"), "model.safetensors");
//   for (const auto& [name, entry] : file.header().tensors) {
//     std::string bytes(entry.end - entry.begin, '\0');
//     file.read(entry, bytes.data());
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "cohort/train/safetensors/safetensors_format.h"

namespace cohort::internal {

// Thread safety: any thread.
class SafetensorsReader {
 public:
  // Reads and checks the header; `path` is the file's name in errors.
  // Errors: DataLoss (no safetensors file, or damaged), as parse_safetensors_header.
  SafetensorsReader(std::unique_ptr<ReadableFile> file, std::string path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  // The elements in row-major order, little-endian. The format has no checksum of them.
  void read(const SafetensorsEntry& entry, void* out) const;

 private:
  std::unique_ptr<ReadableFile> file_;
  std::string path_;
  SafetensorsHeader header_;
  uint64_t data_begin_ = 0;
};

// Writes tensors as they come; none is held in memory. The file has its name from finish() on,
// when it is whole and safe; one of that name is replaced in that moment.
// Thread safety: none. One writer of a path at a time.
class SafetensorsWriter {
 public:
  // `header`: the places as place_tensors() gives them.
  // Errors of all calls: as FileSystem's; of this one: also as format_safetensors_header.
  SafetensorsWriter(FileSystem& files, std::string path, const SafetensorsHeader& header);
  // Removes what was written, unless finish() was called.
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The bytes of the next tensor in file order, or a piece of them.
  void append(std::string_view bytes);
  // Errors: also Internal (not as many bytes as the header says).
  void finish();

 private:
  void discard() noexcept;

  FileSystem& files_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<WritableFile> file_;
  uint64_t left_ = 0;
  bool finished_ = false;
};

}  // namespace cohort::internal
