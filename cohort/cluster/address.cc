#include "cohort/cluster/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cohort/cluster/config_error.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr size_t kLongestName = 253;
constexpr size_t kLongestLabel = 63;
constexpr size_t kLongestZone = 15;  // IF_NAMESIZE, less its NUL
constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

[[noreturn]] void refuse(std::string_view text, std::string_view problem) {
  throw InvalidArgumentError(str(quoted_start(text), " ", problem));
}

std::optional<in_addr> to_ipv4(const std::string& host) {
  in_addr bytes;
  if (inet_pton(AF_INET, host.c_str(), &bytes) != 1) return std::nullopt;
  return bytes;
}

// Parses an IPv6 address without its zone ("%eth0").
std::optional<in6_addr> to_ipv6(const std::string& host) {
  in6_addr bytes;
  if (inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &bytes) != 1) return std::nullopt;
  return bytes;
}

bool is_zone(std::string_view zone) {
  return !zone.empty() && zone.size() <= kLongestZone && std::ranges::all_of(zone, [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
  });
}

// Characters that no host, port or path has: they would also break an error's one line.
void check_characters(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) refuse(text, "has a NUL byte");
    if (byte <= ' ' || byte == 0x7f) refuse(text, "has a blank or a control character");
  }
}

int parse_port(std::string_view text, std::string_view port, const AddressOptions& options) {
  if (port.empty()) refuse(text, "has no port after ':'");
  if (!std::ranges::all_of(port, is_digit)) {
    refuse(text, str("has the port ", quoted_start(port), ", which is no number"));
  }
  const int lowest = options.any_port ? 0 : 1;
  const auto number = parse_number<int32_t>(port);
  if (!number || *number < lowest || *number > 65535) {
    refuse(text, str("has the port ", quoted_start(port), "; ports are ", lowest, " to 65535"));
  }
  if (port.size() > 1 && port[0] == '0') refuse(text, "has a port that begins with 0");
  return *number;
}

void check_ipv6(std::string_view text, const std::string& host) {
  const size_t percent = host.find('%');
  if (!to_ipv6(host)) refuse(text, str("has no IPv6 address between its brackets"));
  if (percent != host.npos && !is_zone(std::string_view(host).substr(percent + 1))) {
    refuse(text, "has a wrong zone after '%'");
  }
}

void check_label(std::string_view text, std::string_view label) {
  if (label.empty()) refuse(text, "has a host with an empty part between dots");
  if (label.size() > kLongestLabel)
    refuse(text, "has a host with a part of more than 63 characters");
  if (label.front() == '-' || label.back() == '-') {
    refuse(text, "has a host with a part that begins or ends with '-'");
  }
  for (const char c : label) {
    // DNS has no names with '_', but container networks do.
    if (is_letter(c) || is_digit(c) || c == '-' || c == '_') continue;
    const bool ascii = static_cast<unsigned char>(c) < 0x80;
    refuse(text, str("has a host with ",
                     ascii ? quoted(std::string_view(&c, 1)) : "a letter that is not ASCII"));
  }
}

// Whether the C library reads the label as a number when it resolves a host. It reads "0x7f000001"
// as one, too.
bool is_number(std::string_view label) {
  if (label.starts_with("0x") || label.starts_with("0X")) {
    return std::ranges::all_of(label.substr(2), [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
  }
  return std::ranges::all_of(label, is_digit);
}

// The host is a name or an IPv4 address. If it ends in a number, it must be an IPv4 address.
void check_host(std::string_view text, std::string_view host) {
  if (host.empty()) refuse(text, "has no host before ':'");
  std::string_view rest = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
  if (rest.size() > kLongestName) refuse(text, "has a host of more than 253 characters");
  size_t dot = rest.find('.');
  for (; dot != rest.npos; dot = rest.find('.')) {
    check_label(text, rest.substr(0, dot));
    rest.remove_prefix(dot + 1);
  }
  check_label(text, rest);
  if (is_number(rest) && !to_ipv4(std::string(host))) {
    refuse(text, "has a host that ends in a number and is no IPv4 address");
  }
}

// Each slash once, so that a path has one form.
std::string without_repeated_slashes(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (c != '/' || !result.ends_with('/')) result += c;
  }
  return result;
}

// "unix:/path"; "unix:///path" is the same, as gRPC reads it.
Address parse_unix(std::string_view text) {
  const std::string path = without_repeated_slashes(text.substr(kUnix.size()));
  if (!path.starts_with('/')) refuse(text, "must have an absolute path after 'unix:'");
  if (path.size() > kLongestPath) {
    refuse(text,
           str("has a path of ", path.size(), " bytes; a unix socket's may have ", kLongestPath));
  }
  if (path.ends_with('/')) refuse(text, "names a folder; write the path of a socket");
  const std::string closed = path + "/";
  if (closed.find("/./") != closed.npos || closed.find("/../") != closed.npos) {
    refuse(text, "has '.' or '..' in its path; write it without");
  }
  return {.host = "", .port = 0, .path = path};
}

Address parse_tcp(std::string_view text, const AddressOptions& options) {
  if (text.find("://") != text.npos) refuse(text, "has a scheme; write host:port without it");
  if (text.find('/') != text.npos) refuse(text, "has a path; write host:port without it");
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) refuse(text, "has a '[' without ']'");
    const std::string host(text.substr(1, end - 1));
    check_ipv6(text, host);
    if (!text.substr(end + 1).starts_with(':')) refuse(text, "has no port; write [address]:port");
    return {.host = host, .port = parse_port(text, text.substr(end + 2), options), .path = ""};
  }
  const size_t colon = text.rfind(':');
  if (colon == text.npos) refuse(text, "has no port; write host:port");
  if (text.find(':') != colon) {
    const bool bare = to_ipv6(std::string(text)) || to_ipv6(std::string(text.substr(0, colon)));
    refuse(text, bare ? "is an IPv6 address without brackets; write [address]:port"
                      : "has more than one ':'; write host:port, or [address]:port for IPv6");
  }
  check_host(text, text.substr(0, colon));
  return {.host = std::string(text.substr(0, colon)),
          .port = parse_port(text, text.substr(colon + 1), options),
          .path = ""};
}

bool is_ipv6(const Address& address) { return address.host.find(':') != std::string::npos; }

}  // namespace

Address parse_address(std::string_view text, const AddressOptions& options) {
  if (text.empty()) refuse(text, "is empty; write host:port");
  check_characters(text);
  return text.starts_with(kUnix) ? parse_unix(text) : parse_tcp(text, options);
}

std::string to_string(const Address& address) {
  if (address.is_unix()) return std::string(kUnix) + address.path;
  const std::string host = is_ipv6(address) ? "[" + address.host + "]" : address.host;
  return host + ":" + decimal_digits(address.port);
}

Address canonical(const Address& address) {
  Address result = address;
  if (address.is_unix()) return result;
  const size_t zone = address.host.find('%');
  if (const auto bytes = is_ipv6(address) ? to_ipv6(address.host) : std::nullopt) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, &*bytes, text.data(), text.size());
    result.host = text.data() + (zone == std::string::npos ? "" : address.host.substr(zone));
    return result;
  }
  for (char& c : result.host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (result.host.ends_with('.')) result.host.pop_back();
  return result;
}

bool is_loopback(const Address& address) {
  if (address.is_unix()) return true;
  if (is_ipv6(address)) {
    const auto bytes = to_ipv6(address.host);
    return bytes && (IN6_IS_ADDR_LOOPBACK(&*bytes) ||
                     (IN6_IS_ADDR_V4MAPPED(&*bytes) && bytes->s6_addr[12] == 127));
  }
  if (const auto bytes = to_ipv4(address.host)) return (ntohl(bytes->s_addr) >> 24) == 127;
  return canonical(address).host == "localhost";
}

bool is_unspecified(const Address& address) {
  if (address.is_unix()) return false;
  if (is_ipv6(address)) {
    const auto bytes = to_ipv6(address.host);
    return bytes && IN6_IS_ADDR_UNSPECIFIED(&*bytes);
  }
  const auto bytes = to_ipv4(address.host);
  return bytes && bytes->s_addr == INADDR_ANY;
}

}  // namespace cohort::internal
