// Unix sockets between processes of one host and user: connecting, and messages with descriptors.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/files/unique_fd.h"

namespace cohort::collective::shared_memory {

using Deadline = std::chrono::steady_clock::time_point;

// Empty: nobody listens there. Errors: ResourceExhausted, DeadlineExceeded.
std::optional<internal::UniqueFd> connect_to(const std::string& name, Deadline deadline);

// What is left of the time, for poll(): 0 once the deadline has passed.
int poll_milliseconds(Deadline deadline);

// Sends all bytes, and the descriptors with the first. Whether that went well.
bool send_all(int fd, std::span<const char> bytes, std::span<const int> descriptors,
              Deadline deadline);

enum class Received { kAll, kClosed, kLate };
// Fills `bytes`; descriptors that come with them are added to `descriptors`.
Received receive_all(int fd, std::span<char> bytes, std::vector<internal::UniqueFd>& descriptors,
                     Deadline deadline);

}  // namespace cohort::collective::shared_memory
