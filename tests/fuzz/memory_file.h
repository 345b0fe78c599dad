// Bytes as a file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "cohort/core/files/file_system.h"
#include "tests/fuzz/record_check.h"

namespace cohort::fuzz {

// The bytes must live as long. A read outside of them ends the program.
class MemoryFile final : public internal::ReadableFile {
 public:
  explicit MemoryFile(std::string_view bytes) : bytes_(bytes) {}

  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, void* out, size_t length) const override {
    require_of_records(offset <= bytes_.size() && length <= bytes_.size() - offset,
                       "reads inside the file");
    if (length > 0) std::memcpy(out, bytes_.data() + offset, length);
  }

 private:
  std::string_view bytes_;
};

}  // namespace cohort::fuzz
