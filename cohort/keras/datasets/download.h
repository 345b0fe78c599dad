// A file from the network, complete and with the right checksum, or not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cohort::internal {

struct DownloadOptions {
  std::string url;     // http, https or file
  std::string target;  // the file's path; its folder is made if need be
  std::string md5;     // of the file, 32 hexadecimal digits in lower case
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // of the whole
  // Given up when slower than 1000 bytes a second for so long.
  std::chrono::seconds stall_timeout = std::chrono::seconds(20);
  int64_t max_bytes = int64_t{1} << 30;
};

// Downloads to a temporary file beside the target and renames that: the target is never partial,
// and several processes may download it at once.
// Errors: Unavailable (no network, no such host or file, too slow), DataLoss (partial, larger than
// max_bytes, another checksum), ResourceExhausted (disk full), PermissionDenied (folder or file
// cannot be made).
void download(const DownloadOptions& options);

// The MD5 of bytes as 32 hexadecimal digits.
std::string md5_of(const std::string& bytes);

}  // namespace cohort::internal
