// The bytes of a data file from the first to the last, inflated where they are compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cohort/core/files/compression.h"
#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// Offsets count the bytes that come out: of a compressed file, those of its content.
// A read that fails is tried once more, a little later (second_try.h).
// Thread safety: none.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Fewer than `capacity` bytes only at the end, and before damage; 0 only at the end.
  // Errors: DataLoss (the device; the compressed data is damaged, or ends too early), until a seek.
  virtual size_t read(char* out, size_t capacity) = 0;
  // No more than so many bytes can still come; 0 only at the end.
  virtual uint64_t max_left() const = 0;
  // Goes to `offset`. Everything before it is inflated again if the file is compressed. Errors:
  // DataLoss (the file ends before; as read).
  virtual void seek(uint64_t offset) = 0;
};

// `name`: the file's name in errors.
std::unique_ptr<ByteStream> make_byte_stream(std::unique_ptr<ReadableFile> file, std::string name,
                                             Compression compression);

}  // namespace cohort::internal
