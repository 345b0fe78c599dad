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

// As FileSystem::open; that and every read of the file are given up after `timeout`. Each call
// costs a thread and a copy. What was given up goes on on its thread until the kernel lets go of
// it, and touches nothing of the caller's; `files` must live as long. Errors: also DeadlineExceeded
// (names the file), ResourceExhausted (no thread to be had).
std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          std::chrono::milliseconds timeout);

}  // namespace cohort::internal
