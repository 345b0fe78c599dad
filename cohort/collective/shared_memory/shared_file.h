// A file without a name, in memory, that processes of one host map.
#pragma once

#include <cstdint>

#include "cohort/core/host/unique_fd.h"

namespace cohort::collective::shared_memory {

// A part of a file in this process's memory. Unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  // Errors: ResourceExhausted.
  Mapping(int fd, int64_t begin, int64_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// The file cannot become shorter, so that what is mapped stays there.
class SharedFile {
 public:
  SharedFile() = default;
  // A new file of this length, without memory. Errors: ResourceExhausted.
  explicit SharedFile(int64_t bytes);
  // Maps another task's file. Errors: DataLoss (it is not of this length, or not sealed).
  SharedFile(internal::UniqueFd fd, int64_t bytes);

  int fd() const { return fd_.get(); }
  // Takes memory for this part, so that no access to it can fail later. Errors: ResourceExhausted.
  void reserve(int64_t begin, int64_t bytes) const;
  Mapping map(int64_t begin, int64_t bytes) const { return {fd_.get(), begin, bytes}; }

 private:
  internal::UniqueFd fd_;
};

}  // namespace cohort::collective::shared_memory
