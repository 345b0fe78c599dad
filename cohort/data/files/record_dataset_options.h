// Options of all datasets that read files.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace cohort::data {

struct RecordDatasetOptions {
  // The compression of all files: "", "GZIP" or "ZLIB".
  std::string compression_type = "";
  // The number of bytes that are read at once. An element keeps at most 8 times its own bytes in
  // memory.
  int64_t buffer_size = 128 << 10;
  // The number of files that are read ahead at once, on the thread pool. They give one element each
  // in turn, in an order that depends on the files alone. AUTOTUNE: 10. Default: one file after
  // another.
  std::optional<int64_t> num_parallel_reads = {};
  // A damaged file ends where the damage begins, with a warning in the log, and reading continues
  // with the next file. Files that are missing or cannot be read are still errors.
  bool ignore_errors = false;
  // The time limit for opening a file and for each read. Beyond it they are DeadlineExceeded
  // errors, and the next call tries again. Default: 60 s if another machine or process serves the
  // file (NFS, SMB, FUSE); no limit if it is on this machine, whose device drivers have time limits
  // of their own. A file with a limit uses a thread, and its reads cost a copy. 0: no limit.
  std::optional<std::chrono::milliseconds> read_timeout = {};
};

}  // namespace cohort::data

namespace cohort::internal {
struct RecordFilesOptions;
// Errors: InvalidArgument (no such compression; read_timeout below 0).
RecordFilesOptions record_files_options(const data::RecordDatasetOptions& options);
}  // namespace cohort::internal
