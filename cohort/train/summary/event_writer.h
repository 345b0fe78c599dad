// Writes TensorBoard's event files: TFRecords, each an Event (event_encoding.h).
//
//   EventWriter writer(posix_file_system(), "logs", {});
//   writer.add(encode_summary(...));     // returns at once; a thread writes
//   writer.flush();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "cohort/core/files/file_system.h"
#include "cohort/core/program/process.h"

namespace cohort::internal {

struct EventWriterOptions {
  int64_t max_queue = 10;  // events that may wait to be written
  std::chrono::milliseconds flush_interval = std::chrono::minutes(2);
  std::string filename_suffix = ".v2";
  // How long flush, close, and an add that finds too much waiting may take.
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
};

// Seconds since 1970.
double wall_time();

// Thread safety: any thread. Errors of all calls: those of writing, perhaps of an earlier event;
// after one, every call throws it, and the file ends before the event. FailedPrecondition (after
// close; in a child process after fork), DeadlineExceeded (the device does not answer).
class EventWriter {
 public:
  // Makes the directory, and in it a file of a new name that holds its first event.
  // Errors: InvalidArgument (options; the directory is a file), PermissionDenied,
  // ResourceExhausted.
  EventWriter(FileSystem& files, const std::string& logdir, const EventWriterOptions& options);
  // Closes; an error is logged.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  const std::string& path() const { return path_; }
  bool is_closed() const;

  // Waits only where 64 MiB wait to be written.
  void add(std::string event);
  // Returns when all events added so far are on the device.
  void flush();
  // Flushes, and ends the file. A second call does nothing.
  void close();

 private:
  struct Shared;

  void require_own_process() const;

  const std::string path_;
  const std::chrono::milliseconds timeout_;
  const HomeProcess home_;
  std::shared_ptr<Shared> shared_;  // also the thread's, which outlives a device that hangs
  std::thread thread_;
};

}  // namespace cohort::internal
