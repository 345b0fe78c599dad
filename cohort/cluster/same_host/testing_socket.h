// For tests that write the bytes of a connection themselves.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>
#include <string>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

// Whether the server closes this connection.
inline bool is_closed(const UniqueFd& connection) {
  pollfd watched{connection.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&watched, 1, 20'000) == 1 && ::recv(connection.get(), &byte, 1, 0) <= 0;
}

inline void send_all(const UniqueFd& connection, const std::string& bytes) {
  EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
}

// As errors and the log name it.
inline std::string own_process() { return "process " + std::to_string(::getpid()); }

}  // namespace cohort::internal::rpc
