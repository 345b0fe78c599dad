// TCP ports of the loopback interface that nothing else takes, for servers that a test starts.
//
//   FreePorts ports = pick_free_ports(2);
//   start_server("127.0.0.1:" + std::to_string(ports[0]));
#pragma once

#include "cohort/cluster/launch/free_ports.h"

namespace cohort::testing {

using internal::FreePorts;
using internal::pick_free_ports;

}  // namespace cohort::testing
