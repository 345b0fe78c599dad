// The memory that the tasks of a group have taken with Communicator::buffer, as this task sees it.
#pragma once

#include <mutex>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/shared_memory/layout.h"
#include "cohort/collective/shared_memory/shared_file.h"

namespace cohort::collective::shared_memory {

// Thread safety: values_of by one thread; the rest from any.
class SharedParts {
 public:
  // The file outlives it.
  SharedParts(const SharedFile& file, const Layout& layout, int rank);

  // A new part of this task. Errors: ResourceExhausted, InvalidArgument (a negative number).
  char* take(int64_t bytes);
  // Writes where the buffer lies into the call, if it lies in one part of this task.
  void locate(const Buffer& buffer, Call& call) const;
  // The values of another task's call, which lie in shared memory.
  // Errors: ResourceExhausted, DataLoss (they do not lie in that task's region).
  char* values_of(int rank, const Call& call);

 private:
  struct Part {
    int64_t begin = 0;  // in the file
    Mapping memory;
  };

  // For a locked mutex.
  const Part* find(int rank, int64_t begin) const;

  const SharedFile& file_;
  const Layout layout_;
  const int rank_;
  mutable std::mutex mutex_;              // guards what follows
  int64_t taken_ = 0;                     // bytes of this task's region
  std::vector<std::vector<Part>> parts_;  // a task's, in the order in which they were mapped
};

}  // namespace cohort::collective::shared_memory
