#include "cohort/keras/datasets/byte_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/files/inflate.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kMaxFileBytes = std::numeric_limits<uint32_t>::max();

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

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::span<const uint8_t> bytes, std::string file)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_(std::move(file)) {}

  void read(std::span<uint8_t> out) override {
    if (out.empty()) return;
    if (out.size() > max_left()) {
      fail(str("the file is truncated: ", out.size(), " more bytes cannot come from a file of ",
               bytes_.size()));
    }
    const size_t done = inflate(out);
    if (done < out.size()) {
      fail(str("the file is truncated: its data ends ", out.size() - done, " bytes too early"));
    }
    num_read_ += out.size();
  }

  void expect_end() override {
    uint8_t surplus = 0;
    if (inflate({&surplus, 1}) > 0) fail("there is more data than the header of the data says");
    if (position_ < bytes_.size()) {
      fail(str(bytes_.size() - position_, " bytes too many after the compressed data"));
    }
  }

  uint64_t max_left() const override {
    return std::min(bytes_.size() * kMaxDeflateRatio - num_read_, kMaxFileBytes);
  }

  void fail(const std::string& message) const override {
    throw DataLossError(str(file_, ", byte ", position_, " of the compressed file: ", message));
  }

 private:
  // Fills the output, or reads until the stream ends. Returns the number of bytes.
  size_t inflate(std::span<uint8_t> out) {
    const auto step = inflater_.inflate(bytes_.substr(position_),
                                        {reinterpret_cast<char*>(out.data()), out.size()});
    position_ += step.read;
    if (step.problem != nullptr) fail(str("the file is corrupt: ", step.problem));
    if (step.written < out.size() && !inflater_.ended()) {
      fail("the file is truncated: the compressed data does not end");
    }
    return step.written;
  }

  const std::string_view bytes_;
  const std::string file_;
  Inflater inflater_{Compression::kGzip};
  size_t position_ = 0;    // of the compressed bytes
  uint64_t num_read_ = 0;  // of the uncompressed bytes
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
