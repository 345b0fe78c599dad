#include "cohort/train/safetensors/safetensors_file.h"

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kLengthBytes = 8;

}  // namespace

SafetensorsReader::SafetensorsReader(std::unique_ptr<ReadableFile> file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {
  if (file_->size() < kLengthBytes) {
    throw DataLossError(
        str("'", path_, "': ", file_->size(), " bytes are too few for a safetensors file"));
  }
  unsigned char bytes[kLengthBytes];
  file_->read(0, bytes, kLengthBytes);
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | bytes[i];
  const uint64_t rest = file_->size() - kLengthBytes;
  if (length > rest || length > kMostSafetensorsHeaderBytes) {
    throw DataLossError(str("'", path_, "': a header of ", length, " bytes, where ",
                            length > rest ? rest : kMostSafetensorsHeaderBytes,
                            " can be; is it a safetensors file?"));
  }
  std::string json(length, '\0');
  file_->read(kLengthBytes, json.data(), json.size());
  header_ = parse_safetensors_header(json, rest - length, path_);
  data_begin_ = kLengthBytes + length;
}

void SafetensorsReader::read(const SafetensorsEntry& entry, void* out) const {
  file_->read(data_begin_ + entry.begin, out, entry.end - entry.begin);
}

SafetensorsWriter::SafetensorsWriter(FileSystem& files, std::string path,
                                     const SafetensorsHeader& header)
    : files_(files),
      path_(std::move(path)),
      temporary_(join_path(parent_directory(path_), str(".cohort-export-", base_name(path_)))),
      left_(data_bytes(header)) {
  const std::string head = format_safetensors_header(header);
  try {
    file_ = files_.create(temporary_, {.expected_bytes = head.size() + left_});
    file_->append(head);
  } catch (...) {
    discard();
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!finished_) discard();
}

void SafetensorsWriter::discard() noexcept {
  try {
    file_.reset();
    if (files_.exists(temporary_)) files_.remove(temporary_);
  } catch (...) {  // the next writer of this path replaces it
  }
}

void SafetensorsWriter::append(std::string_view bytes) {
  if (bytes.size() > left_) {
    throw InternalError(str("'", path_, "': more bytes than its header says"));
  }
  left_ -= bytes.size();
  file_->append(bytes);
}

void SafetensorsWriter::finish() {
  if (left_ != 0) throw InternalError(str("'", path_, "': ", left_, " bytes are missing"));
  file_->sync();
  file_->close();
  file_.reset();
  files_.rename(temporary_, path_);
  finished_ = true;
  files_.sync_directory(parent_directory(path_));
}

}  // namespace cohort::internal
