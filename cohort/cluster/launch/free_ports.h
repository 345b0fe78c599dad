// TCP ports of the loopback interface that nothing else takes.
//
//   FreePorts ports = pick_free_ports(2);
//   start_server("127.0.0.1:" + std::to_string(ports[0]));
#pragma once

#include <cstddef>
#include <vector>

namespace cohort::internal {

// Ports, each held by a bound socket, so that the operating system gives them to nobody else. A
// server may bind them all the same if it sets SO_REUSEADDR, as gRPC and Gloo do; for one that does
// not, call release() first.
// Thread safety: as std::vector.
class FreePorts {
 public:
  FreePorts() = default;
  ~FreePorts();
  FreePorts(FreePorts&& other) noexcept;
  FreePorts& operator=(FreePorts&& other) noexcept;

  int size() const { return static_cast<int>(ports_.size()); }
  int operator[](int i) const { return ports_[static_cast<size_t>(i)]; }
  // Closes the sockets; the numbers stay.
  void release();

 private:
  friend FreePorts pick_free_ports(int count);
  std::vector<int> ports_;
  std::vector<int> sockets_;
};

// `count` different ports. Errors: InvalidArgument (count negative), ResourceExhausted (no socket
// or no port to be had).
FreePorts pick_free_ports(int count);

}  // namespace cohort::internal
