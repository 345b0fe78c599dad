#include "cohort/keras/datasets/idx.h"

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/datasets/byte_source.h"

namespace cohort::internal {
namespace {

constexpr uint8_t kUnsignedByte = 8;

void read_magic(ByteSource& source, int rank) {
  std::array<uint8_t, 4> magic;
  source.read(magic);
  if (magic[0] != 0 || magic[1] != 0) {
    source.fail(str("no IDX file: it begins with the bytes ", int{magic[0]}, " ", int{magic[1]},
                    " instead of 0 0"));
  }
  if (magic[2] != kUnsignedByte) {
    source.fail(str("numbers of IDX type ", int{magic[2]},
                    "; only unsigned bytes (type 8) are "
                    "supported"));
  }
  if (magic[3] != rank) {
    source.fail(str("an array of ", int{magic[3]}, " dimensions instead of ", rank));
  }
}

int64_t read_dimension(ByteSource& source) {
  std::array<uint8_t, 4> bytes;
  source.read(bytes);
  int64_t size = 0;
  for (uint8_t byte : bytes) size = size << 8 | byte;
  return size;
}

std::string join(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t size : shape) text += (text.empty() ? "" : " x ") + decimal_digits(size);
  return text;
}

}  // namespace

IdxArray parse_idx(std::span<const uint8_t> bytes, int rank, const std::string& file) {
  const auto source = make_byte_source(bytes, file);
  read_magic(*source, rank);
  IdxArray array;
  for (int i = 0; i < rank; ++i) array.shape.push_back(read_dimension(*source));
  uint64_t count = 1;
  for (int64_t size : array.shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(size), &count)) {
      source->fail(str("the header declares ", join(array.shape), " bytes, which no file holds"));
    }
  }
  if (count > source->max_left()) {
    source->fail(str("the file is truncated: the header declares ", join(array.shape),
                     " bytes, but at most ", source->max_left(), " can follow"));
  }
  array.values.resize(count);
  source->read(array.values);
  source->expect_end();
  return array;
}

IdxArray read_idx_file(const std::string& path, int rank) {
  return parse_idx(read_data_file(path), rank, path);
}

}  // namespace cohort::internal
