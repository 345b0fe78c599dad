// Files that may never answer: those of a network file system whose server is gone.
//
//   auto file = open_within(files, "/net/train.tfrecord", {std::chrono::seconds(10)});
//   file->read(0, out, 100);      // DeadlineExceededError after 10 seconds
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

// How long opening a file, and each read of it, may take.
struct FileDeadline {
  std::chrono::milliseconds timeout{0};  // 0: for ever
  // Files of this machine's own devices are opened in time, and then read as they are: without a
  // copy, and as long as the device takes, whose driver has deadlines of its own.
  bool remote_only = false;
};

// The deadline that applies if nobody sets another.
inline constexpr FileDeadline kDefaultFileDeadline = {std::chrono::seconds(60), true};

// The deadline for the option `read_timeout`; `whose` names the options in the error.
// Errors: InvalidArgument (below 0).
FileDeadline file_deadline(const std::optional<std::chrono::milliseconds>& read_timeout,
                           const std::string& whose);

// Opens a file as FileSystem::open does. The opening and every read of the file are given up when
// `deadline` has passed. The file has a thread, which makes its calls one after another, and each
// read costs a copy. A call that was given up goes on on that thread until the kernel lets go of
// it, and touches nothing of the caller's; `files` must live as long. The file's next call waits
// for it first. Once four calls are stuck with a path, so does the next call to open that path: a
// server that stays away keeps few threads, however often a program tries. Later files use the
// threads again.
// Errors: also DeadlineExceeded (names the file), ResourceExhausted (no thread to be had).
std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          const FileDeadline& deadline);

// Makes any other call about `path` in the same way; the call must own all that it touches.
// `action`, such as "listing '/net'", begins the error's text.
// Errors: also what `call` throws.
void call_within(const FileDeadline& deadline, const std::string& path, const std::string& action,
                 std::function<void()> call);

}  // namespace cohort::internal
