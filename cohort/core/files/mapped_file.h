// A file's bytes as memory that all processes of a host share: the page cache's own pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// For files that nobody changes in place, as those that are written under another name and renamed:
// a process that touches a page which a mapped file has lost is ended by SIGBUS, and where the
// device fails, too. A file that is replaced or removed stays as it was for who has mapped it.
// Thread safety: immutable.
class MappedFile {
 public:
  // Errors: as FileSystem::open; ResourceExhausted (no address space).
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, static_cast<size_t>(size_)}; }
  const std::string& path() const { return path_; }
  // Writes to the very file that is mapped, whatever its path names by now. Errors: as FileSystem.
  void write(uint64_t offset, std::string_view bytes) const;

 private:
  const std::string path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
  char* data_ = nullptr;
};

}  // namespace cohort::internal
