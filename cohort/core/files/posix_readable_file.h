// A file that the operating system reads.
#pragma once

#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Thread safety: any thread.
class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(UniqueFd fd, std::string path, uint64_t size);

  uint64_t size() const override { return size_; }
  // False on the file systems of this machine's disks and memory, true on all others.
  bool is_remote() const override { return remote_; }
  void read(uint64_t offset, void* out, size_t length) const override;
  // Large parts that are not in the page cache are read past it (O_DIRECT), if the file system can
  // do that: the kernel's own read-ahead is several times slower than a fast disk.
  void scan(uint64_t offset, uint64_t length,
            const std::function<void(std::string_view)>& visit) const override;

 private:
  void check_range(uint64_t offset, uint64_t length) const;
  [[noreturn]] void throw_too_short(uint64_t offset, uint64_t length, uint64_t size) const;
  bool is_cached(uint64_t offset, uint64_t length) const;
  void scan_direct(const UniqueFd& fd, uint64_t offset, uint64_t length,
                   const std::function<void(std::string_view)>& visit) const;

  const UniqueFd fd_;
  const std::string path_;
  const uint64_t size_;
  const bool remote_;
};

}  // namespace cohort::internal
