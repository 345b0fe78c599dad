// Where the ranks of bench_collective are, and what connects them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/communicator.h"

namespace bench {

struct Place {
  int rank = 0;
  int size = 0;
  std::string directory = "";  // of this run, which all ranks see
  // "memory": all are on one host; "gloo"; the servers' calls, "calls" without and "tls" with
  // certificates, which rank 0 makes.
  std::string backend = "memory";
  // Of `ip netns`: the host of each rank, with the address 10.78.0.(rank + 1). None for memory.
  std::vector<std::string> hosts = {};
};

// Goes to the rank's host, before there are other threads; rank 0 makes what all need.
void enter(const Place& place);

// COLLECTIVE over the ranks.
std::shared_ptr<cohort::collective::Communicator> connect(const Place& place);

}  // namespace bench
