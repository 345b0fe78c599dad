#include "cohort/collective/shared_memory/waiting_room.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cohort/collective/forming_wait.h"
#include "cohort/collective/shared_memory/local_socket.h"
#include "cohort/core/error.h"
#include "cohort/core/host/random_hex.h"
#include "cohort/core/host/unix_socket.h"
#include "cohort/core/text.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::UniqueFd;

// The most connections that have said nothing yet; the oldest is dropped for the newest.
constexpr size_t kMostUnidentified = 512;

// Takes as long for every wrong secret.
bool is_same_secret(const char* one, const std::string& other) {
  unsigned char difference = 0;
  for (size_t i = 0; i < Hello::kSecretDigits; ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

}  // namespace

WaitingRoom::WaitingRoom(const GroupMember& member)
    : member_(member),
      name_("cohort-" + internal::random_hex(16)),
      secret_(internal::random_hex(Hello::kSecretDigits / 2)),
      listener_(internal::listen_at_name(name_)),
      tasks_(static_cast<size_t>(member.size())) {}

std::vector<int> WaitingRoom::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < member_.size(); ++rank) {
    if (task(rank) < 0) ranks.push_back(rank);
  }
  return ranks;
}

void WaitingRoom::wait_for_all() {
  FormingWait wait(member_);
  std::vector<pollfd> waiting;
  while (!missing().empty() && !wait.is_over()) {
    waiting.assign(1, {listener_.get(), POLLIN, 0});
    for (const UnidentifiedPeer& peer : unidentified_)
      waiting.push_back({peer.fd.get(), POLLIN, 0});
    for (const UniqueFd& fd : tasks_) waiting.push_back({fd.get(), 0, 0});
    if (::poll(waiting.data(), waiting.size(), poll_milliseconds(wait)) <= 0) continue;
    forget_the_gone();
    std::erase_if(unidentified_, [&](UnidentifiedPeer& peer) { return !listen_to(peer); });
    accept();
  }
  unidentified_.clear();
}

void WaitingRoom::accept() {
  for (;;) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      throw ResourceExhaustedError(
          internal::str("cannot accept at a unix socket: ", internal::errno_text(errno)));
    }
    if (!internal::is_of_same_user(fd.get())) continue;
    if (unidentified_.size() == kMostUnidentified) unidentified_.erase(unidentified_.begin());
    unidentified_.push_back({std::move(fd)});
  }
}

// Whether there may be more to hear.
bool WaitingRoom::listen_to(UnidentifiedPeer& peer) {
  const ssize_t got = ::recv(peer.fd.get(), peer.bytes.data() + peer.size,
                             peer.bytes.size() - peer.size, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  peer.size += static_cast<size_t>(got);
  if (peer.size < peer.bytes.size()) return true;
  identify(peer);
  return false;
}

// A task that comes once more takes the place of its predecessor, which has died.
void WaitingRoom::identify(UnidentifiedPeer& peer) {
  Hello hello;
  std::memcpy(&hello, peer.bytes.data(), sizeof hello);
  if (!is_same_secret(hello.secret, secret_) || hello.generation != member_.generation) return;
  if (hello.rank < 1 || hello.rank >= member_.size()) return;
  tasks_[static_cast<size_t>(hello.rank)] = std::move(peer.fd);
}

void WaitingRoom::forget_the_gone() {
  for (UniqueFd& fd : tasks_) {
    if (!fd.valid()) continue;
    pollfd state{fd.get(), 0, 0};
    if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0) fd.reset();
  }
}

}  // namespace cohort::collective::shared_memory
