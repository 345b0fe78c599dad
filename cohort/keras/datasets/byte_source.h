// The bytes of a file, gzip or plain, with every length checked before memory is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort::internal {

// Reads bytes once, from the first to the last.
// Thread safety: none.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Exactly out.size() bytes. Errors: DataLoss (fewer are left, corrupt; file and byte offset).
  virtual void read(std::span<uint8_t> out) = 0;
  // Errors: DataLoss (bytes are left; a checksum does not hold).
  virtual void expect_end() = 0;
  // No more than so many bytes can still come.
  virtual uint64_t max_left() const = 0;

  // A DataLossError about the place that was read last: "FILE, byte 17: MESSAGE".
  [[noreturn]] virtual void fail(const std::string& message) const = 0;
};

// The source of `bytes`, which must outlive it: gzip (one member) if they begin as gzip does.
// `file` is its name in errors.
std::unique_ptr<ByteSource> make_byte_source(std::span<const uint8_t> bytes, std::string file);

// All bytes of a file. Errors: NotFound (no such file), InvalidArgument (no regular file, 4 GiB or
// more), DataLoss (it cannot be read to its end).
std::vector<uint8_t> read_data_file(const std::string& path);

}  // namespace cohort::internal
