// Files of byte strings (blobs) that can be read at any position; of elements, where element_file.h
// says what the bytes are.
//
//   "cohortE\1"                                        8 bytes
//   for each blob: length u64, masked crc32c of the length u32, bytes, masked crc32c of them u32
//   the offset of each blob                            u64 * count
//   the info: bytes about all of them
//   offset of the index u64, count u64, masked crc32c of index and info u32,
//   masked crc32c of the 20 bytes before u32, "cohortE$"            the trailer, 32 bytes
//
// All little-endian. A file without a good trailer was not finished. Needs no libtorch, so that a
// fuzzer can link it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Writes beside `path` and puts the whole file in its place at the end: until then `path` is what
// it was. A writer that is killed leaves a file, which the next one in the directory removes on its
// host.
// Thread safety: none.
class BlobFileWriter {
 public:
  // Errors of all: FileSystem's.
  BlobFileWriter(FileSystem& files, std::string path);
  // Removes an unfinished file.
  ~BlobFileWriter();
  BlobFileWriter(const BlobFileWriter&) = delete;
  BlobFileWriter& operator=(const BlobFileWriter&) = delete;

  void append(std::string_view blob);
  void finish(std::string_view info);

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
class BlobFile {
 public:
  // `path` is its name, for errors. Errors: InvalidArgument (not such a file), DataLoss (unfinished
  // or damaged: names the file and the byte).
  BlobFile(std::unique_ptr<ReadableFile> file, std::string path);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  const std::string& info() const { return info_; }
  const std::string& path() const { return path_; }
  // Blob `i` of [0, size()). Errors: DataLoss, ResourceExhausted (no memory for it).
  std::string read(int64_t i) const;

 private:
  std::string bytes(uint64_t offset, uint64_t length) const;
  void read_trailer();
  [[noreturn]] void fail(uint64_t offset, std::string_view problem) const;

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  std::vector<uint64_t> offsets_;
  uint64_t end_ = 0;  // of the last blob
  std::string info_;
};

}  // namespace cohort::internal
