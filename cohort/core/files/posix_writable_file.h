// A file being written through the operating system: through one buffer, and for big files past the
// page cache (O_DIRECT) on a thread of their own, where the file system can.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "cohort/core/files/aligned_buffer.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/files/write_behind.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// A file of this size or more is written past the page cache: filling the cache with bytes that are
// not read again costs more than waiting for the device.
inline constexpr uint64_t kDirectBytes = uint64_t{32} << 20;

class PosixWritableFile final : public WritableFile {
 public:
  // Takes an empty file that is open for writing.
  PosixWritableFile(UniqueFd fd, std::string path, const CreateOptions& options);

  void append(std::string_view bytes) override;
  void sync() override;
  void close() override;

 private:
  // Runs a step that may fail. After the first failure, every step fails with the same error.
  template <class Step>
  void attempt(Step&& step);
  void flush_full_buffer();
  void flush();
  void write(std::string_view bytes);
  void write_past_cache(std::string_view& bytes);
  void trim();
  [[noreturn]] void fail(int error_number, std::string_view action) const;

  UniqueFd fd_;
  const std::string path_;
  uint64_t reserved_bytes_;
  uint64_t appended_bytes_ = 0;
  bool direct_ = false;  // the writing thread's between flushes
  AlignedBuffer buffer_;
  size_t filled_ = 0;
  std::exception_ptr failure_;
  std::unique_ptr<WriteBehind> behind_;  // last, so that its thread ends first
};

}  // namespace cohort::internal
