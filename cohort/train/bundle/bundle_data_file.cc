#include "cohort/train/bundle/bundle_data_file.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"

namespace cohort::internal {

BundleDataFile::BundleDataFile(FileSystem& files, std::string path, uint64_t expected_bytes)
    : files_(files), path_(std::move(path)) {
  try {
    file_ = files_.create(path_, {.expected_bytes = expected_bytes});
  } catch (const Error&) {
    discard_file(files_, path_);  // a file may be there although its space is not
    throw;
  }
}

BundleDataFile::~BundleDataFile() {
  file_.reset();
  if (is_ours_) discard_file(files_, path_);
}

uint32_t BundleDataFile::append(std::string_view bytes, uint32_t crc) {
  // A checksum of bytes that were just copied costs little while they are in the cache.
  constexpr size_t kPieceBytes = size_t{256} << 10;
  for (size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    const std::string_view piece = bytes.substr(done, kPieceBytes);
    file_->append(piece);
    crc = crc32c(piece, crc);
  }
  size_ += bytes.size();
  return crc;
}

void BundleDataFile::finish() {
  file_->sync();
  file_->close();
  file_.reset();
}

void discard_file(FileSystem& files, const std::string& path) noexcept {
  try {
    if (files.exists(path)) files.remove(path);
  } catch (...) {  // the next writer of this directory removes it
  }
}

}  // namespace cohort::internal
