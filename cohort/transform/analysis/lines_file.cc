#include "cohort/transform/analysis/lines_file.h"

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// Analyses that were killed left theirs, which may be large.
std::string begin_file(FileSystem& files, const std::string& directory) {
  remove_unlocked_left_overs(files, directory);
  return unlocked_temporary_path(directory, "vocabulary");
}

[[noreturn]] void throw_full(const std::string& path, const ResourceExhaustedError& error) {
  throw ResourceExhaustedError(str("a vocabulary cannot be written to ",
                                   quoted(parent_directory(path)), ": ", error.what(),
                                   "; free space there, or name another output directory"));
}

}  // namespace

LinesFile::LinesFile(FileSystem& files, const std::string& directory)
    : files_(files), path_(begin_file(files, directory)) {
  try {
    file_ = files.create(path_, {.mode = 0666});
  } catch (const ResourceExhaustedError& error) {
    throw_full(path_, error);
  }
}

LinesFile::~LinesFile() {
  if (file_ == nullptr) return;
  file_ = nullptr;
  try {
    files_.remove(path_);
  } catch (const std::exception&) {  // the next one in the directory tries again
  }
}

void LinesFile::add(std::string_view line) {
  buffer_ += line;
  buffer_ += '\n';
  ++lines_;
  if (buffer_.size() >= kBufferBytes) write_buffer();
}

void LinesFile::write_buffer() {
  crc_ = crc32c(buffer_, crc_);
  bytes_ += buffer_.size();
  try {
    file_->append(buffer_);
  } catch (const ResourceExhaustedError& error) {
    throw_full(path_, error);
  }
  buffer_.clear();
}

AnalysisResult::TextFile LinesFile::finish() {
  write_buffer();
  try {
    file_->sync();
    file_->close();
  } catch (const ResourceExhaustedError& error) {
    throw_full(path_, error);
  }
  file_ = nullptr;
  return {path_, lines_, bytes_, crc_};
}

}  // namespace cohort::internal
