// Files that may never answer: those of a network file system whose server is gone.
//
//   auto file = open_within(files, "/net/train.tfrecord", std::chrono::seconds(10));
//   file->read(0, out, 100);      // DeadlineExceededError after 10 seconds
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/core/file_system.h"

namespace cohort::internal {

// As FileSystem::open; that and every read of the file are given up after `timeout`. The file has a
// thread of its own, which makes its calls one after another, and each read costs a copy. What was
// given up goes on on that thread until the kernel lets go of it, and touches nothing of the
// caller's; `files` must live as long. The file's next call waits for it first, and so does, after
// four of them, the next call to open the same path: a server that stays away keeps few threads,
// however often is tried. Errors: also DeadlineExceeded (names the file), ResourceExhausted (no
// thread to be had).
std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          std::chrono::milliseconds timeout);

}  // namespace cohort::internal
