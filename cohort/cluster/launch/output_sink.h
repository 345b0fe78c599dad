// The destination of the lines of all tasks: a terminal, a pipe or a file. Its reader may be slow,
// stand still or go away, its disk may be full, and nothing here waits for it. Lines for which
// there is no room are lost. This is logged unless the reader is gone.
//
//   if (sink.has_room()) sink.add(lines);
//   poll for POLLOUT on sink.waiting_fd();
//   sink.write_some();
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Thread safety: none.
class OutputSink {
 public:
  // `fd` must outlive it.
  explicit OutputSink(int fd);

  // Producers of lines stop while there is no room, so that a task that writes faster than its
  // reader reads has to wait.
  bool has_room() const { return pending_.size() - written_ < kMostPending; }
  // Writes what can be written now and keeps the rest; also where there is no room.
  void add(std::string_view lines);
  void write_some();
  // Becomes writable when there is something to do; negative where nothing waits.
  int waiting_fd() const { return pending_.empty() ? -1 : fd_; }

 private:
  void on_error(int error);

  static constexpr size_t kMostPending = 256 << 10;

  UniqueFd own_;  // the same file, opened again so that writes do not block
  int fd_;
  size_t most_per_write_;
  std::string pending_;
  size_t written_ = 0;       // of pending_
  bool lost_ = false;        // who read it is gone: the tasks go on
  bool is_failing_ = false;  // the last write was an error
};

// Whether both descriptors lead to the same terminal, pipe or file.
bool is_same_file(int a, int b);

}  // namespace cohort::internal
