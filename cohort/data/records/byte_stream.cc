#include "cohort/data/records/byte_stream.h"

#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/inflate.h"
#include "cohort/core/text.h"
#include "cohort/data/records/second_try.h"

namespace cohort::internal {
namespace {

void read(const ReadableFile& file, uint64_t offset, char* out, size_t length) {
  if (length > 0) with_second_try([&] { file.read(offset, out, length); });
}

class PlainStream final : public ByteStream {
 public:
  PlainStream(std::unique_ptr<ReadableFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

  size_t read(char* out, size_t capacity) override {
    const size_t length = std::min<uint64_t>(capacity, max_left());
    internal::read(*file_, offset_, out, length);
    offset_ += length;
    return length;
  }
  uint64_t max_left() const override { return file_->size() - offset_; }
  void seek(uint64_t offset) override {
    if (offset > file_->size()) {
      throw DataLossError(str(quoted(name_), " has ", file_->size(),
                              " bytes, so that nothing can be read at byte ", offset));
    }
    offset_ = offset;
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  const std::string name_;
  uint64_t offset_ = 0;
};

class InflatingStream final : public ByteStream {
 public:
  InflatingStream(std::unique_ptr<ReadableFile> file, std::string name, Compression compression)
      : file_(std::move(file)),
        name_(std::move(name)),
        compression_(compression),
        inflater_(compression),
        buffer_(std::min<uint64_t>(file_->size(), kBufferBytes)) {}

  size_t read(char* out, size_t capacity) override {
    size_t done = 0;
    while (done < capacity) {
      if (!ready_.empty()) {
        const size_t count = std::min(capacity - done, ready_.size());
        std::copy_n(ready_.begin(), count, out + done);
        ready_.remove_prefix(count);
        done += count;
      } else if (ended_ || !problem_.empty()) {
        break;
      } else {
        try {
          inflate();
        } catch (const Error&) {
          if (done == 0) throw;
          break;  // it comes again
        }
      }
    }
    if (done == 0 && !problem_.empty()) fail(problem_);
    offset_ += done;
    return done;
  }

  uint64_t max_left() const override {
    if (ended_) return ready_.size();
    const uint64_t input_left = file_->size() - file_offset_ + input_.size();
    return ready_.size() + input_left * kMaxDeflateRatio + kMostInside;
  }

  void seek(uint64_t offset) override {
    if (offset < offset_ || !problem_.empty()) rewind();
    std::vector<char> skipped(std::min<uint64_t>(offset - offset_, kBufferBytes));
    while (offset_ < offset) {
      const size_t wanted = std::min<uint64_t>(offset - offset_, skipped.size());
      if (read(skipped.data(), wanted) == 0) {
        fail(str("its content has ", offset_, " bytes, so that nothing can be read at byte ",
                 offset, " of it"));
      }
    }
  }

 private:
  static constexpr size_t kBufferBytes = size_t{256} << 10;
  static constexpr size_t kOutputBytes = size_t{64} << 10;  // stays in the cache
  // What the inflater may have read and not yet given out: its window and some bits.
  static constexpr uint64_t kMostInside = 128 << 10;

  // Makes some bytes ready; none also where a stream ends or the data turns out to be damaged.
  // Always as many at a time, whoever asks: how much of damaged data comes out depends on that.
  void inflate() {
    if (input_.empty()) fill();
    if (inflater_.ended()) return next_stream();
    const auto step = inflater_.inflate(input_, output_);
    input_.remove_prefix(step.read);
    ready_ = {output_.data(), step.written};
    if (step.problem != nullptr) {
      problem_ = step.problem;
    } else if (!inflater_.ended() && step.written == 0 && step.read == 0) {
      problem_ = "it is cut short: the compressed data does not end";
    }
  }

  void fill() {
    const size_t length = std::min<uint64_t>(buffer_.size(), file_->size() - file_offset_);
    internal::read(*file_, file_offset_, buffer_.data(), length);
    file_offset_ += length;
    input_ = {buffer_.data(), length};
  }

  // gzip files may be several put together; nothing may follow a zlib stream.
  void next_stream() {
    ended_ = input_.empty();
    if (ended_) return;
    if (compression_ == Compression::kGzip) {
      inflater_.reset();
    } else {
      problem_ = "bytes after the end of the compressed data";
    }
  }

  void rewind() {
    inflater_.reset();
    input_ = {};
    ready_ = {};
    file_offset_ = 0;
    offset_ = 0;
    ended_ = false;
    problem_.clear();
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataLossError(str(quoted(name_), ", byte ", file_offset_ - input_.size(),
                            " of the compressed file: ", problem));
  }

  const std::unique_ptr<ReadableFile> file_;
  const std::string name_;
  const Compression compression_;
  Inflater inflater_;
  std::vector<char> buffer_;
  std::string_view input_;  // what is left of the buffer
  std::vector<char> output_ = std::vector<char>(kOutputBytes);
  std::string_view ready_;    // what is left of the output
  uint64_t file_offset_ = 0;  // of the compressed byte after the buffer
  uint64_t offset_ = 0;       // of the next byte that comes out
  bool ended_ = false;
  std::string problem_;  // with what comes next
};

}  // namespace

std::unique_ptr<ByteStream> make_byte_stream(std::unique_ptr<ReadableFile> file, std::string name,
                                             Compression compression) {
  if (compression == Compression::kNone) {
    return std::make_unique<PlainStream>(std::move(file), std::move(name));
  }
  return std::make_unique<InflatingStream>(std::move(file), std::move(name), compression);
}

}  // namespace cohort::internal
