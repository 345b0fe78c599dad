#include "cohort/keras/datasets/byte_source.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// ISA-L counts bytes in 32 bits.
constexpr uint64_t kMaxFileBytes = std::numeric_limits<uint32_t>::max();
// Deflate's shortest code for its longest match: 258 bytes from 2 bits.
constexpr uint64_t kMaxDeflateRatio = 1032;

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::span<const uint8_t> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)) {}

  void read(std::span<uint8_t> out) override {
    if (out.size() > max_left()) {
      fail(str("the file is truncated: ", out.size(), " bytes are expected here, but ", max_left(),
               " are left"));
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(position_), out.size(), out.begin());
    position_ += out.size();
  }

  void expect_end() override {
    if (max_left() > 0) fail(str(max_left(), " bytes too many at the end of the file"));
  }

  uint64_t max_left() const override { return bytes_.size() - position_; }

  void fail(const std::string& message) const override {
    throw DataLossError(str(file_, ", byte ", position_, ": ", message));
  }

 private:
  const std::span<const uint8_t> bytes_;
  const std::string file_;
  size_t position_ = 0;
};

const char* describe_inflate_error(int code) {
  switch (code) {
    case ISAL_INVALID_BLOCK:
      return "an invalid deflate block";
    case ISAL_INVALID_SYMBOL:
      return "an invalid deflate symbol";
    case ISAL_INVALID_LOOKBACK:
      return "a reference to before the first byte";
    case ISAL_INVALID_WRAPPER:
      return "an invalid gzip header";
    case ISAL_UNSUPPORTED_METHOD:
      return "a compression method other than deflate";
    case ISAL_INCORRECT_CHECKSUM:
      return "a checksum or length that does not fit the data";
    default:
      return "an error in the compressed data";
  }
}

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::span<const uint8_t> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)), state_(std::make_unique<inflate_state>()) {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
    state_->next_in = const_cast<uint8_t*>(bytes.data());  // it is only read
    state_->avail_in = static_cast<uint32_t>(bytes.size());
  }

  void read(std::span<uint8_t> out) override {
    if (out.empty()) return;
    if (out.size() > max_left()) {
      fail(str("the file is truncated: ", out.size(), " more bytes cannot come from a file of ",
               bytes_.size()));
    }
    state_->next_out = out.data();
    state_->avail_out = static_cast<uint32_t>(out.size());
    inflate();
    if (state_->avail_out > 0) {
      fail(str("the file is truncated: its data ends ", state_->avail_out, " bytes too early"));
    }
    num_read_ += out.size();
  }

  void expect_end() override {
    uint8_t surplus = 0;
    state_->next_out = &surplus;
    state_->avail_out = 1;
    inflate();
    if (state_->avail_out == 0) fail("there is more data than the header of the data says");
    if (state_->avail_in > 0) {
      fail(str(state_->avail_in, " bytes too many after the compressed data"));
    }
  }

  uint64_t max_left() const override {
    return std::min(bytes_.size() * kMaxDeflateRatio - num_read_, kMaxFileBytes);
  }

  void fail(const std::string& message) const override {
    throw DataLossError(str(file_, ", byte ", state_->next_in - bytes_.data(),
                            " of the compressed file: ", message));
  }

 private:
  // Until the output is full or the stream has ended.
  void inflate() {
    while (state_->avail_out > 0 && state_->block_state != ISAL_BLOCK_FINISH) {
      const uint32_t in = state_->avail_in;
      const uint32_t out = state_->avail_out;
      const int code = isal_inflate(state_.get());
      if (code < 0 || code == ISAL_NEED_DICT) {
        fail(str("the file is corrupt: ", describe_inflate_error(code)));
      }
      if (state_->block_state != ISAL_BLOCK_FINISH && state_->avail_in == in &&
          state_->avail_out == out) {
        fail("the file is truncated: the compressed data does not end");
      }
    }
  }

  const std::span<const uint8_t> bytes_;
  const std::string file_;
  const std::unique_ptr<inflate_state> state_;  // 86 KB
  uint64_t num_read_ = 0;                       // of the uncompressed bytes
};

}  // namespace

std::unique_ptr<ByteSource> make_byte_source(std::span<const uint8_t> bytes, std::string file) {
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
    return std::make_unique<GzipSource>(bytes, std::move(file));
  }
  return std::make_unique<PlainSource>(bytes, std::move(file));
}

std::vector<uint8_t> read_data_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw NotFoundError(str("there is no file ", path));
  if (!std::filesystem::is_regular_file(status)) {
    throw InvalidArgumentError(str(path, " is no regular file"));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxFileBytes) {
    throw InvalidArgumentError(
        str(path, " has ", size, " bytes; at most ", kMaxFileBytes, " can be read"));
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes(error ? 0 : size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (error || !file) {
    throw DataLossError(str("cannot read ", path, " beyond byte ", file.gcount()));
  }
  return bytes;
}

}  // namespace cohort::internal
