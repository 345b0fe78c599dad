// Files of elements that can be read at any position: what save() and cache() write.
//
//   "cohortE\1"                                        8 bytes
//   for each element: length u64, masked crc32c of the length u32,
//                     encode_element's bytes, masked crc32c of them u32
//   the offset of each element                         u64 * count
//   encode_element of {'graph', 'start', 'spec'}       ElementFileInfo
//   offset of the index u64, count u64, masked crc32c of index and info u32,
//   masked crc32c of the 20 bytes before u32, "cohortE$"            the trailer, 32 bytes
//
// All little-endian. A file without a good trailer was not finished.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/file_system.h"
#include "cohort/core/spec.h"
#include "cohort/core/structure.h"

namespace cohort::internal {

// What a file says about its elements as a whole.
struct ElementFileInfo {
  std::string graph;  // describe_graph of where they are from
  std::string start;  // the state of that pipeline's iterator before the first of them
  StructureSpec spec;
};

// Writes beside `path` and puts the whole file in its place at the end: until then `path` is what
// it was. Thread safety: none.
class ElementFileWriter {
 public:
  // Errors of all: FileSystem's.
  ElementFileWriter(FileSystem& files, std::string path);
  // Removes an unfinished file.
  ~ElementFileWriter();
  ElementFileWriter(const ElementFileWriter&) = delete;
  ElementFileWriter& operator=(const ElementFileWriter&) = delete;

  void append(const Structure& element);
  void finish(const ElementFileInfo& info);

 private:
  void write(std::string_view bytes);
  // Removes the file unless it is finished.
  void discard();

  FileSystem& files_;
  const std::string path_;
  const std::string unfinished_path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t size_ = 0;
  std::vector<uint64_t> offsets_;
};

// Thread safety: immutable; reads from any thread.
class ElementFile {
 public:
  // Errors: NotFound, InvalidArgument (not a file of elements), DataLoss (unfinished or damaged:
  // names the file and the byte).
  ElementFile(FileSystem& files, std::string path);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  const ElementFileInfo& info() const { return info_; }
  // Element `i` of [0, size()). Errors: DataLoss.
  Structure read(int64_t i) const;

 private:
  std::string bytes(uint64_t offset, uint64_t length) const;
  void read_trailer();
  void read_info(const std::string& bytes);
  [[noreturn]] void fail(uint64_t offset, std::string_view problem) const;

  const std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::vector<uint64_t> offsets_;
  uint64_t end_ = 0;  // of the last element
  ElementFileInfo info_;
};

}  // namespace cohort::internal
