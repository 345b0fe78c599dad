// Unix sockets between processes of one host and user: connecting, and messages with descriptors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/collective/forming_wait.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::collective::shared_memory {

// Empty: nobody listens there, or too many wait there. Errors: ResourceExhausted.
std::optional<internal::UniqueFd> connect_to(const std::string& name);

// For how long to wait at a time, for poll(): 0 once that time has passed.
int poll_milliseconds(const FormingWait& wait);

// These two: errors of FormingWait::is_over.
// Sends all bytes, and the descriptors with the first. Whether that went well.
bool send_all(int fd, std::span<const char> bytes, std::span<const int> descriptors,
              FormingWait& wait);

enum class Received { kAll, kClosed, kLate };
// Fills `bytes`; descriptors that come with them are added to `descriptors`.
Received receive_all(int fd, std::span<char> bytes, std::vector<internal::UniqueFd>& descriptors,
                     FormingWait& wait);

}  // namespace cohort::collective::shared_memory
