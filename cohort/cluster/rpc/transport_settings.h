// The times and limits of connections, the same on both sides: a server ends connections whose
// client pings oftener than it permits.
#pragma once

#include <chrono>
#include <cstddef>

namespace cohort::internal::rpc {

struct TransportSettings {
  // A silent peer is asked for a sign of life after this time, and given up after the other. A
  // stopped process still accepts connections, so only this finds it.
  std::chrono::milliseconds keepalive_time{10'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  // For a new connection to prove who it is.
  std::chrono::milliseconds handshake_timeout{5'000};
  // Without any call, a connection is closed; the next call makes it again.
  std::chrono::minutes max_idle{10};
  // How soon renewed certificates are noticed, for new connections; a second at least.
  std::chrono::seconds certificate_refresh{10};
  size_t max_connections = 4096;
  size_t max_calls_per_connection = 1024;
};

// After which a peer that was to be heard is given up.
inline std::chrono::milliseconds longest_silence(const TransportSettings& settings) {
  return settings.keepalive_time + settings.keepalive_timeout;
}

// What tests of faults use: a stopped peer is found within two seconds.
inline TransportSettings quick_settings() {
  using std::chrono::milliseconds;
  return {.keepalive_time = milliseconds(1000),
          .keepalive_timeout = milliseconds(1000),
          .certificate_refresh = std::chrono::seconds(1)};
}

}  // namespace cohort::internal::rpc
