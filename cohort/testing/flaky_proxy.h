// A TCP connection that misbehaves on request: a proxy on loopback between a client and a server.
//
//   testing::FlakyProxy proxy("127.0.0.1:2222");
//   connect(proxy.address());
//   proxy.set_delay(std::chrono::milliseconds(50));   // each way
//   proxy.stall();                                    // bytes stop, connections stay
//   proxy.cut();                                      // all connections are reset
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace cohort::testing {

// One thread serves all connections. Thread safety: any thread.
class FlakyProxy {
 public:
  // target: "127.0.0.1:port"; it need not listen yet: a connection that cannot be passed on is
  // reset.
  // Errors: InvalidArgument (not of that form), ResourceExhausted (no port, no thread).
  explicit FlakyProxy(const std::string& target);
  ~FlakyProxy();
  FlakyProxy(const FlakyProxy&) = delete;
  FlakyProxy& operator=(const FlakyProxy&) = delete;

  // What clients connect to: "127.0.0.1:port".
  const std::string& address() const;

  // Delays every byte from now on by `delay`, in each direction.
  void set_delay(std::chrono::milliseconds delay);
  // Nothing passes in either direction, as behind a cable that was pulled; new connections are
  // accepted and wait, too.
  void stall();
  // Ends stall() and refuse(); what was held up follows.
  void resume();
  // Resets all connections. New ones are served.
  void cut();
  // Resets all connections, now and as they come.
  void refuse();

  int num_connections() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::testing
