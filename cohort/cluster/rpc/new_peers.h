// The peers that have connected to a server and have made no call yet. When a handshake fails, it
// is that of one of them; the report of the failure does not say which.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal::rpc {

// Thread safety: any thread.
class NewPeers {
 public:
  // `connection` has been accepted from "host:port", and belongs to somebody else from then on.
  void add(int connection, const std::string& address);
  // Notes that the peer at this address has made a call: "ipv4:127.0.0.1:41234", of which only the
  // port counts.
  void has_called(std::string_view address);
  // The addresses of those whose connections are open, the latest first.
  std::vector<std::string> waiting();

 private:
  struct Peer {
    int connection;
    uint64_t socket;  // its number in the kernel, for a closed descriptor's number is used again
    std::string address;
  };

  void forget_closed();

  std::atomic<size_t> num_waiting_{0};  // the size of peers_, for has_called
  std::mutex mutex_;
  std::vector<Peer> peers_;
};

// A socket's number in the kernel; 0 where `fd` is closed.
uint64_t socket_number(int fd);

}  // namespace cohort::internal::rpc
