#include "cohort/data/records/record_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/records/second_try.h"

namespace cohort::internal {
namespace {

// A block holds several records, where they are large, but not for the sake of huge ones.
constexpr size_t kRecordsPerBlock = 4;
constexpr size_t kMostFillBytes = size_t{4} << 20;
constexpr size_t kLeastBufferBytes = 64;

}  // namespace

void Framing::Input::fail(const std::string& problem) const {
  throw DataLossError(str(quoted(file), ", byte ", position.offset, ": ", problem));
}

RecordReader::RecordReader(std::unique_ptr<ByteStream> bytes, std::string file,
                           Compression compression, std::shared_ptr<const Framing> framing,
                           const RecordReaderOptions& options)
    : bytes_(std::move(bytes)),
      file_(std::move(file)),
      compressed_(compression != Compression::kNone),
      framing_(std::move(framing)),
      options_(options),
      pool_(std::make_shared<ChunkPool>()),
      fill_bytes_(std::max(options.buffer_bytes, kLeastBufferBytes)) {}

// The next capacity. Memory for a whole record is taken if the file is not compressed: the framing
// has seen that the file has it. What a compressed file says of its content is believed only as far
// as it comes, and what says nothing of its length may go on without end.
size_t RecordReader::larger_capacity(size_t size, uint64_t needed) const {
  const uint64_t available = size + bytes_->max_left();
  const uint64_t grown = std::max<uint64_t>(uint64_t{size} * 2, size + 1);
  if (!compressed_ && needed > 0) return std::min(std::max(needed, grown), available);
  const uint64_t most = std::max<uint64_t>(options_.max_record_bytes, options_.buffer_bytes);
  const auto refuse = [&](const auto&... problem) {
    Framing::Input{{}, 0, file_, position_}.fail(
        str("record ", position_.index, " has ", problem...));
  };
  if (needed > most) refuse(needed, " bytes; a record of a compressed file may have ", most);
  if (size >= most) {
    refuse("more than ", most, " bytes; is a quotation mark not closed, or is it no file of text?");
  }
  return std::min({grown, available, most});
}

RecordRun RecordReader::next() {
  auto chunk = pool_->take(std::max<size_t>(
      std::min<uint64_t>(fill_bytes_, rest_.size() + bytes_->max_left()), rest_.size() + 1));
  std::copy(rest_.begin(), rest_.end(), chunk->bytes.get());
  chunk->size = rest_.size();
  // The chunk holds from here on what the reader has read, whatever fails.
  previous_ = chunk;
  rest_ = {chunk->bytes.get(), chunk->size};
  while (true) {
    chunk->size += bytes_->read(chunk->bytes.get() + chunk->size, chunk->capacity - chunk->size);
    rest_ = {chunk->bytes.get(), chunk->size};
    const Framing::Input input{rest_, rest_.size() + bytes_->max_left(), file_, position_};
    const Framing::Split split = framing_->split(input, chunk->records);
    if (!chunk->records.empty()) {
      RecordRun run{chunk->records, rest_.substr(0, split.consumed), position_, chunk};
      const size_t average = split.consumed / chunk->records.size();
      fill_bytes_ = std::max(fill_bytes_, std::min(average * kRecordsPerBlock, kMostFillBytes));
      position_.offset += split.consumed;
      position_.index += split.indices;
      rest_.remove_prefix(split.consumed);
      return run;
    }
    rest_.remove_prefix(split.consumed);
    position_.offset += split.consumed;
    position_.index += split.indices;
    const bool stuck = split.consumed == 0 || rest_.empty();
    if (input.at_end() && stuck) return {{}, {}, position_, nullptr};
    make_room(chunk, split.needed);
  }
}

// For more bytes behind rest_, which moves to the front of the chunk, or of a larger one.
void RecordReader::make_room(std::shared_ptr<RecordChunk>& chunk, uint64_t needed) {
  if (rest_.size() < chunk->capacity / 2) {
    std::memmove(chunk->bytes.get(), rest_.data(), rest_.size());
  } else {
    const auto larger = pool_->take(larger_capacity(rest_.size(), needed));
    std::copy(rest_.begin(), rest_.end(), larger->bytes.get());
    chunk = larger;
    previous_ = larger;
  }
  chunk->size = rest_.size();
  rest_ = {chunk->bytes.get(), chunk->size};
}

void RecordReader::seek(const RecordPosition& position) {
  rest_ = {};
  bytes_->seek(position.offset);
  position_ = position;
}

std::unique_ptr<RecordReader> open_records(FileSystem& files, const std::string& path,
                                           Compression compression,
                                           std::shared_ptr<const Framing> framing,
                                           const RecordReaderOptions& options) {
  std::unique_ptr<ReadableFile> file;
  try {
    file = with_second_try([&] { return open_within(files, path, options.deadline); });
  } catch (const InvalidArgumentError& error) {  // a directory, a pipe
    throw DataLossError(str(error.what(), "; it holds no records"));
  }
  return std::make_unique<RecordReader>(make_byte_stream(std::move(file), path, compression), path,
                                        compression, std::move(framing), options);
}

}  // namespace cohort::internal
