// The address at which a task listens: "host:port", "[IPv6]:port", or "unix:/path" for tasks of one
// host.
//
//   const Address address = parse_address("[::1]:2222");
//   address.host;          // "::1"
//   address.port;          // 2222
//   is_loopback(address);  // true
//
// Nothing is resolved here: whether a name exists is known when somebody connects.
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal {

// A TCP address has a host and a port, a unix one only a path.
struct Address {
  std::string host;  // IPv4, IPv6 without brackets (perhaps with a zone: "fe80::1%eth0"), or a name
  int port = 0;      // 1 to 65535; 0 where it is still to be chosen
  std::string path;  // absolute, of a unix socket

  bool is_unix() const { return !path.empty(); }
  bool operator==(const Address&) const = default;
};

struct AddressOptions {
  bool any_port = false;  // port 0, which binds a free one, is right, too
};

// Errors: InvalidArgument; its text begins with the quoted address, on one line, and says what is
// wrong with it.
Address parse_address(std::string_view text, const AddressOptions& options = {});
// The text that parse_address reads, and gRPC.
std::string to_string(const Address& address);

// The canonical form of an address: small letters, the shortest IPv6, no dot after a name. Two
// tasks whose canonical addresses are equal cannot both listen.
Address canonical(const Address& address);

// Whether only this host can reach the address: 127.0.0.0/8, ::1, "localhost", and unix sockets.
// The system's resolver may answer otherwise for a name: code that binds must check that, too.
bool is_loopback(const Address& address);
// 0.0.0.0 or ::, which can be listened at and not connected to.
bool is_unspecified(const Address& address);

}  // namespace cohort::internal
