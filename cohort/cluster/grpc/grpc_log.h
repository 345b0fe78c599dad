// Sends gRPC's own log through this library's: a few lines, without those that say nothing to
// anybody, and with the address of a peer whose handshake has failed.
#pragma once

#include "cohort/cluster/rpc/listener.h"

namespace cohort::internal::rpc {

// Takes the log over for the whole process, from the first call on. GRPC_VERBOSITY goes on to say
// what is written at all: by default errors. Thread safety: any thread.
void take_over_grpc_log();

// During its lifetime, counts a server among those whose connections a failed handshake may belong
// to.
// Thread safety: any thread.
class WatchedHandshakes {
 public:
  // `listener` must live longer.
  explicit WatchedHandshakes(Listener& listener);
  ~WatchedHandshakes();
  WatchedHandshakes(const WatchedHandshakes&) = delete;
  WatchedHandshakes& operator=(const WatchedHandshakes&) = delete;

 private:
  Listener* const listener_;
};

}  // namespace cohort::internal::rpc
