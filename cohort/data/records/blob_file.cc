#include "cohort/data/records/blob_file.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kMagic("cohortE\1", 8);
constexpr std::string_view kEndMagic = "cohortE$";
constexpr uint64_t kLengthBytes = 12;  // in front of a blob
constexpr uint64_t kCrcBytes = 4;      // behind it
constexpr uint64_t kTrailerBytes = 32;

template <class Number>
void append_number(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);  // little-endian, as the machine
}
template <class Number>
Number number_at(std::string_view bytes, size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Attempts that were killed left theirs, which may be large.
std::string begin_unfinished(FileSystem& files, const std::string& path) {
  remove_unlocked_left_overs(files, parent_directory(path));
  return unlocked_temporary_path(parent_directory(path), base_name(path));
}

}  // namespace

BlobFileWriter::BlobFileWriter(FileSystem& files, std::string path)
    : files_(files),
      path_(std::move(path)),
      unfinished_path_(begin_unfinished(files, path_)),
      file_(files.create(unfinished_path_)) {
  try {
    write(kMagic);
  } catch (const std::exception&) {
    discard();
    throw;
  }
}

BlobFileWriter::~BlobFileWriter() { discard(); }

void BlobFileWriter::discard() {
  if (!file_) return;
  file_ = nullptr;
  try {
    files_.remove(unfinished_path_);
  } catch (const std::exception&) {  // it is never read
  }
}

void BlobFileWriter::write(std::string_view bytes) {
  file_->append(bytes);
  size_ += bytes.size();
}

void BlobFileWriter::append(std::string_view blob) {
  std::string length;
  append_number(length, uint64_t{blob.size()});
  append_number(length, mask_crc(crc32c(length)));
  offsets_.push_back(size_);
  write(length);
  write(blob);
  std::string crc;
  append_number(crc, mask_crc(crc32c(blob)));
  write(crc);
}

void BlobFileWriter::finish(std::string_view info) {
  const uint64_t index_offset = size_;
  std::string end;
  for (const uint64_t offset : offsets_) append_number(end, offset);
  end += info;
  std::string trailer;
  append_number(trailer, index_offset);
  append_number(trailer, uint64_t{offsets_.size()});
  append_number(trailer, mask_crc(crc32c(end)));
  append_number(trailer, mask_crc(crc32c(trailer)));
  trailer += kEndMagic;
  write(end);
  write(trailer);
  file_->sync();
  file_->close();
  files_.rename(unfinished_path_, path_);
  file_ = nullptr;
  files_.sync_directory(parent_directory(path_));
}

BlobFile::BlobFile(std::unique_ptr<ReadableFile> file, std::string path)
    : path_(std::move(path)), file_(std::move(file)) {
  const uint64_t size = file_->size();
  const std::string magic = bytes(0, std::min<uint64_t>(size, kMagic.size()));
  if (!kMagic.starts_with(magic)) {
    throw InvalidArgumentError(
        str("file ", quoted(path_), " was not written by save() or cache(); name another one"));
  }
  if (size < kMagic.size() + kTrailerBytes) fail(size, "it ends before its trailer");
  read_trailer();
}

void BlobFile::read_trailer() {
  const uint64_t trailer_offset = file_->size() - kTrailerBytes;
  const std::string trailer = bytes(trailer_offset, kTrailerBytes);
  if (!trailer.ends_with(kEndMagic) ||
      number_at<uint32_t>(trailer, 20) != mask_crc(crc32c(trailer.substr(0, 20)))) {
    fail(trailer_offset, "there is no trailer: the file was not written to its end");
  }
  end_ = number_at<uint64_t>(trailer, 0);
  const auto count = number_at<uint64_t>(trailer, 8);
  if (end_ < kMagic.size() || end_ > trailer_offset ||
      count > (trailer_offset - end_) / sizeof(uint64_t) ||
      count > (end_ - kMagic.size()) / (kLengthBytes + kCrcBytes)) {
    fail(trailer_offset, "its trailer does not fit its size");
  }
  const std::string index = bytes(end_, trailer_offset - end_);
  if (number_at<uint32_t>(trailer, 16) != mask_crc(crc32c(index))) {
    fail(end_, "the checksum of its index is wrong");
  }
  uint64_t least = kMagic.size();
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = number_at<uint64_t>(index, i * sizeof(uint64_t));
    if (offset < least || offset > end_ || end_ - offset < kLengthBytes + kCrcBytes) {
      fail(end_ + i * sizeof(uint64_t), "its index points outside of the elements");
    }
    offsets_.push_back(offset);
    least = offset + kLengthBytes + kCrcBytes;
  }
  info_ = index.substr(count * sizeof(uint64_t));
}

std::string BlobFile::bytes(uint64_t offset, uint64_t length) const {
  std::string bytes;
  try {
    bytes.resize(length);  // never more than the file has, which with holes may be any number
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(str("file ", quoted(path_), ", byte ", offset,
                                     ": there is no memory for the ", length,
                                     " bytes from here on"));
  }
  file_->read(offset, bytes.data(), length);
  return bytes;
}

std::string BlobFile::read(int64_t i) const {
  const auto index = static_cast<size_t>(i);
  const uint64_t offset = offsets_[index];
  const uint64_t next = index + 1 < offsets_.size() ? offsets_[index + 1] : end_;
  std::string record = bytes(offset, next - offset);
  const uint64_t length = record.size() - kLengthBytes - kCrcBytes;
  if (number_at<uint32_t>(record, 8) != mask_crc(crc32c(record.substr(0, 8))) ||
      number_at<uint64_t>(record, 0) != length) {
    fail(offset, str("the length of element ", i, " is damaged"));
  }
  const std::string_view body = std::string_view(record).substr(kLengthBytes, length);
  if (number_at<uint32_t>(record, kLengthBytes + length) != mask_crc(crc32c(body))) {
    fail(offset, str("the checksum of element ", i, " is wrong"));
  }
  record.resize(kLengthBytes + length);
  record.erase(0, kLengthBytes);
  return record;
}

void BlobFile::fail(uint64_t offset, std::string_view problem) const {
  throw DataLossError(str("file ", quoted(path_), ", byte ", offset, ": ", problem,
                          "; remove it and have it written anew"));
}

}  // namespace cohort::internal
