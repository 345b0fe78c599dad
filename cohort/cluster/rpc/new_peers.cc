#include "cohort/cluster/rpc/new_peers.h"

#include <sys/stat.h>

#include <algorithm>

namespace cohort::internal::rpc {
namespace {

// More are forgotten, the oldest first: they have connected and say nothing.
constexpr size_t kMostWaiting = 256;

std::string_view port_of(std::string_view address) {
  const size_t colon = address.rfind(':');
  return colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
}

}  // namespace

uint64_t socket_number(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

void NewPeers::add(int connection, const std::string& address) {
  const std::lock_guard lock(mutex_);
  forget_closed();
  if (peers_.size() >= kMostWaiting) peers_.erase(peers_.begin());
  peers_.push_back({connection, socket_number(connection), address});
  num_waiting_ = peers_.size();
}

void NewPeers::has_called(std::string_view address) {
  if (num_waiting_ == 0) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(peers_,
                [&](const Peer& peer) { return port_of(peer.address) == port_of(address); });
  num_waiting_ = peers_.size();
}

void NewPeers::forget_closed() {
  std::erase_if(peers_,
                [](const Peer& peer) { return socket_number(peer.connection) != peer.socket; });
}

std::vector<std::string> NewPeers::waiting() {
  const std::lock_guard lock(mutex_);
  forget_closed();
  num_waiting_ = peers_.size();
  std::vector<std::string> addresses;
  for (auto peer = peers_.rbegin(); peer != peers_.rend(); ++peer) {
    addresses.push_back(peer->address);
  }
  return addresses;
}

}  // namespace cohort::internal::rpc
