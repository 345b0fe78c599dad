// A network of hosts that are namespaces of this machine, for tests of lost packets, partitions and
// slow links. Needs root. Nothing of it is seen outside, and nothing stays behind, whatever way the
// process ends.
//
//   testing::VirtualNetwork network(3);
//   start a process in network.namespace_fd(0), which binds network.address(0);
//   network.partition({0}, {1, 2}, testing::Partition::kSilent);
//   network.heal();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cohort::testing {

enum class Partition {
  kSilent,  // packets vanish: nobody learns of it but by waiting
  kLoud,    // sending fails at once: "no route to host"
};

// Thread safety: none; one thread drives it.
class VirtualNetwork {
 public:
  // Hosts joined by a switch. Errors: InvalidArgument (not 1 to 200 hosts), PermissionDenied (not
  // root), Unknown (a command of iproute2's failed; holds its message).
  explicit VirtualNetwork(int num_hosts);
  ~VirtualNetwork();
  VirtualNetwork(const VirtualNetwork&) = delete;
  VirtualNetwork& operator=(const VirtualNetwork&) = delete;

  int size() const;
  // "10.77.0.1". Loopback works in each host, too.
  std::string address(int host) const;
  // A descriptor of the host's network namespace, for setns. It is valid as long as this object.
  int namespace_fd(int host) const;

  // Cuts every link between a host of `a` and one of `b`, both ways. Several partitions add up.
  void partition(const std::vector<int>& a, const std::vector<int>& b, Partition kind);
  // One way only: what `from` sends does not reach `to`.
  void cut_one_way(int from, int to);
  // Ends all partitions.
  void heal();
  // What the host may send, from here on. 0: no limit.
  void limit_rate(int host, int64_t bits_per_second);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::testing
