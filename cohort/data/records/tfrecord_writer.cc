#include "cohort/data/records/tfrecord_writer.h"

#include <exception>
#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/deflate.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/program/process.h"
#include "cohort/core/text.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::io {
namespace {

constexpr size_t kPendingBytes = size_t{64} << 10;

}  // namespace

struct TFRecordWriter::State {
  State(internal::FileSystem& files, std::string path, const TFRecordOptions& options)
      : path(std::move(path)) {
    const auto compression = internal::compression_of(options.compression_type);
    if (compression != internal::Compression::kNone) deflater.emplace(compression);
    file = files.create(this->path);
  }

  void put(std::string_view bytes) {
    if (!deflater) return file->append(bytes);
    pending += bytes;
    if (pending.size() >= kPendingBytes) compress();
  }
  void compress() {
    deflater->deflate(pending, compressed);
    pending.clear();
    drain();
  }
  void drain() {
    file->append(compressed);
    compressed.clear();
  }

  const internal::HomeProcess home;
  const std::string path;
  std::optional<internal::Deflater> deflater;
  std::unique_ptr<internal::WritableFile> file;  // null once closed
  std::string pending;                           // to be compressed
  std::string compressed;                        // to be written
};

TFRecordWriter::TFRecordWriter(const std::string& path, const TFRecordOptions& options)
    : TFRecordWriter(internal::posix_file_system(), path, options) {}

TFRecordWriter::TFRecordWriter(internal::FileSystem& files, const std::string& path,
                               const TFRecordOptions& options)
    : state_(std::make_unique<State>(files, path, options)) {}

TFRecordWriter::~TFRecordWriter() {
  try {
    // A child of fork must not write what the parent will write.
    if (!state_.empty() && state_->home.is_here()) close();
  } catch (const std::exception&) {
    // Programs that want to know call close().
  }
}

TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;

TFRecordWriter& TFRecordWriter::operator=(TFRecordWriter&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void TFRecordWriter::write(std::string_view record) {
  state_->home.check("a TFRecordWriter");
  if (!state_->file) {
    throw FailedPreconditionError(
        internal::str("TFRecordWriter: ", internal::quoted(state_->path), " is closed"));
  }
  const auto header = internal::tfrecord_header(record);
  const auto footer = internal::tfrecord_footer(record);
  state_->put({header.data(), header.size()});
  state_->put(record);
  state_->put({footer.data(), footer.size()});
}

void TFRecordWriter::flush() {
  state_->home.check("a TFRecordWriter");
  if (!state_->file) return;
  if (state_->deflater) {
    state_->compress();
    state_->deflater->flush(state_->compressed);
    state_->drain();
  }
  state_->file->sync();
}

void TFRecordWriter::close() {
  state_->home.check("a TFRecordWriter");
  if (!state_->file) return;
  // Whatever fails, the file is given up.
  const auto give_up = [](State* state) { state->file.reset(); };
  const std::unique_ptr<State, decltype(give_up)> guard(state_.get(), give_up);
  if (state_->deflater) {
    state_->compress();
    state_->deflater->finish(state_->compressed);
    state_->drain();
  }
  state_->file->close();
}

}  // namespace cohort::io
