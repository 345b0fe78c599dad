// Any bytes are either an address, whose host and port are right and which is written as it was
// read, or an error on one line.
#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "cohort/cluster/address.h"
#include "cohort/core/error.h"

namespace {

using cohort::internal::Address;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_address: broken property: " << property << '\n';
  std::abort();
}

// By other means than the parser's: IPv6 by the C library, names and IPv4 by their characters.
bool is_host(const std::string& host) {
  if (host.empty() || host.size() > 254) return false;
  if (host.find(':') != host.npos) {
    in6_addr bytes;
    return inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &bytes) == 1;
  }
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return host.find_first_not_of(kAllowed) == host.npos && host.front() != '.' &&
         host.find("..") == host.npos;
}

void check(std::string_view text, const Address& address) {
  if (address.is_unix()) {
    require(address.path.front() == '/' && address.path.size() < 108, "a socket's path fits");
    require(address.path.find('\0') == address.path.npos, "a path has no NUL");
  } else {
    require(address.port >= 1 && address.port <= 65535, "a port is one");
    require(is_host(address.host), "a host is one");
  }
  require(address.path.size() + address.host.size() <= text.size(), "nothing is made up");
  require(cohort::internal::parse_address(to_string(address)) == address,
          "what is written is what was read");
  const Address canonical = cohort::internal::canonical(address);
  require(cohort::internal::canonical(canonical) == canonical, "there is one canonical form");
  require(is_loopback(canonical) == is_loopback(address), "another form is the same place");
  require(is_unspecified(canonical) == is_unspecified(address), "another form is the same place");
  require(cohort::internal::parse_address(to_string(canonical)) == canonical,
          "the canonical form is an address");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(text, cohort::internal::parse_address(text));
  } catch (const cohort::InvalidArgumentError& error) {
    const std::string_view message = error.what();
    require(message.find('\n') == message.npos && message.size() < 1000, "an error is one line");
  }
  return 0;
}
