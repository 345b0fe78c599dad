// One data file of a TensorBundle while it is written: a temporary name, bytes and their checksums.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Errors of all calls: as FileSystem's. Thread safety: none.
class BundleDataFile {
 public:
  // expected_bytes: a disk too full for it is found at once.
  BundleDataFile(FileSystem& files, std::string path, uint64_t expected_bytes);
  // Removes the file, unless it was let go.
  ~BundleDataFile();
  BundleDataFile(const BundleDataFile&) = delete;
  BundleDataFile& operator=(const BundleDataFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Returns `crc`, the checksum of what came before, continued.
  uint32_t append(std::string_view bytes, uint32_t crc = 0);
  // Syncs and closes it.
  void finish();
  // Somebody else renames or removes it.
  void let_go() { is_ours_ = false; }

 private:
  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t size_ = 0;
  bool is_ours_ = true;
};

// Removes a file that may not be there; says nothing of errors.
void discard_file(FileSystem& files, const std::string& path) noexcept;

}  // namespace cohort::internal
