#include "cohort/cluster/rpc/refused_connections.h"

#include "cohort/core/error.h"
#include "cohort/core/observe/line_limit.h"
#include "cohort/core/observe/monitoring.h"

namespace cohort::internal::rpc {

void note_refused(const RefusedConnection& refused) {
  // Never destroyed, as LineLimit asks.
  static auto* const lines = new LineLimit("more connections were refused");
  increase_counter(kRefusedConnections, {std::string(refused.reason)});
  const std::string server =
      refused.server.empty() ? "a server" : str("the server at ", refused.server);
  const std::string peer = refused.peer.empty() ? "" : str(" of ", refused.peer);
  lines->say(str(server, " refused a connection", peer, ": ", refused.why));
}

}  // namespace cohort::internal::rpc
