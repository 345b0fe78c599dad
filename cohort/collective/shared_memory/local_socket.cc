#include "cohort/collective/shared_memory/local_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "cohort/collective/shared_memory/layout.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unix_socket.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::UniqueFd;

// Whether it is ready before the deadline.
bool wait_for(int fd, short events, FormingWait& wait) {
  do {
    pollfd waiting{fd, events, 0};
    const int ready = ::poll(&waiting, 1, poll_milliseconds(wait));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  } while (!wait.is_over());
  return false;
}

constexpr size_t kMostDescriptors = kMostTasks + 2;
using ControlBytes = std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)>;

void attach(msghdr& message, ControlBytes& space, std::span<const int> descriptors) {
  if (descriptors.empty()) return;
  message.msg_control = space.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

void detach(msghdr& message, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

int poll_milliseconds(const FormingWait& wait) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(wait.until() - FormingWait::Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}

std::optional<UniqueFd> connect_to(const std::string& name) {
  UniqueFd fd = internal::unix_socket();
  if (internal::connect_to_name(fd, name) != internal::Connected::kYes) return std::nullopt;
  return fd;
}

bool send_all(int fd, std::span<const char> bytes, std::span<const int> descriptors,
              FormingWait& wait) {
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) ControlBytes space{};
    attach(message, space, descriptors);
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN && wait_for(fd, POLLOUT, wait)) continue;
    // So many descriptors of this user are under way as this process may open, perhaps those of the
    // tasks before: they go on when others have arrived, which nothing announces.
    if (sent < 0 && errno == ETOOMANYREFS && !wait.is_over()) {
      ::poll(nullptr, 0, 1);
      continue;
    }
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
    descriptors = {};
  }
  return true;
}

Received receive_all(int fd, std::span<char> bytes, std::vector<UniqueFd>& descriptors,
                     FormingWait& wait) {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) ControlBytes space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      if (!wait_for(fd, POLLIN, wait)) return Received::kLate;
      continue;
    }
    if (got <= 0) return Received::kClosed;
    detach(message, descriptors);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return Received::kAll;
}

}  // namespace cohort::collective::shared_memory
