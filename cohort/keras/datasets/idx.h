// IDX, the file format of MNIST and its kin: a header, then an array of numbers.
//
//   bytes 0 and 1: 0; byte 2: the type of the numbers (8: unsigned bytes, the only one read here);
//   byte 3: the rank; then each dimension (4 bytes, big-endian); then the numbers, the last
//   dimension fastest, and nothing after them.
//
// Needs nothing of libtorch, so that fuzzers run without it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::internal {

struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
};

// Reads an array of `rank` dimensions from the bytes of an IDX file, plain or gzip. Takes no more
// memory than the bytes can fill. `file` is the file's name in errors.
// Errors: DataLoss (not IDX, other type or rank, truncated, corrupt, too long: file and offset).
IdxArray parse_idx(std::span<const uint8_t> bytes, int rank, const std::string& file);

// The same from a file. Errors also: NotFound, InvalidArgument (no regular file, 4 GiB or more).
IdxArray read_idx_file(const std::string& path, int rank);

}  // namespace cohort::internal
