// The times and limits of connections, the same on both sides: a server ends connections whose
// client pings oftener than it permits.
#pragma once

#include <chrono>
#include <cstddef>

namespace cohort::internal::rpc {

struct TransportSettings {
  // A silent peer is asked for a sign of life after keepalive_time, and given up when
  // keepalive_timeout has passed as well. Only this finds a stopped process, which still accepts
  // connections.
  std::chrono::milliseconds keepalive_time{10'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  // How long a new connection may take to prove who it is.
  std::chrono::milliseconds handshake_timeout{5'000};
  // A connection is closed when it has had no call for this long; the next call opens it again.
  std::chrono::minutes max_idle{10};
  // How soon renewed certificates are noticed, for new connections; a second at least.
  std::chrono::seconds certificate_refresh{10};
  size_t max_connections = 4096;
  size_t max_calls_per_connection = 1024;
};

// How long a peer may be silent before it is given up.
inline std::chrono::milliseconds longest_silence(const TransportSettings& settings) {
  return settings.keepalive_time + settings.keepalive_timeout;
}

// The settings of tests of faults: a stopped peer is found within two seconds.
inline TransportSettings quick_settings() {
  using std::chrono::milliseconds;
  return {.keepalive_time = milliseconds(1000),
          .keepalive_timeout = milliseconds(1000),
          .certificate_refresh = std::chrono::seconds(1)};
}

}  // namespace cohort::internal::rpc
