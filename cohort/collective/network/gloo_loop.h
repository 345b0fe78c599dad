// Starts Gloo's sends and receives on the thread that also finishes them, and says there when a time has come.
//
// Who starts one holds the lock of its connection while it writes to the socket. Gloo's thread does not
// wait for that lock: as long as there is something to read, it asks for it again and again, also on the
// core that the thread which holds it needs. Calls of microseconds then take milliseconds.
//
// Gloo's own time limits are not used: whoever's wait one ends closes all connections, and so waits for Gloo's
// thread with the lock of one, without a limit; that thread may be waiting for this lock, to start something.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/host/unique_fd.h"

namespace cohort::collective {

// Thread safety: any thread.
class GlooLoop final : gloo::transport::tcp::Handler {
 public:
  struct Start {
    gloo::transport::UnboundBuffer* buffer;  // lives until it is done, or stop() has returned
    int rank;
    uint64_t slot;
    bool sends;
  };
  // Called on Gloo's thread where one cannot be started, with what Gloo says.
  using Failed = std::function<void(int rank, const std::string& how)>;
  using Clock = std::chrono::steady_clock;
  // Called on Gloo's thread when the time of call_at has come. Returns when it is to be called next.
  using Due = std::function<Clock::time_point()>;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  // The context is connected over TCP. Errors: ResourceExhausted (no descriptor).
  GlooLoop(gloo::Context& context, Failed failed, Due due);
  ~GlooLoop() override;

  // Has them started, in their order, and takes them out of `starts`. Without effect after stop().
  void start(std::vector<Start>& starts);
  // In place of the time that was given before.
  void call_at(Clock::time_point time);
  // Nothing is started any more. Before Gloo's connections are closed: who closes one waits for Gloo's
  // thread with its lock held. Not called on Gloo's thread.
  void stop();

 private:
  void handleEvents(int events) override;

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  const Failed failed_;
  const Due due_;
  const internal::UniqueFd event_;
  const internal::UniqueFd timer_;
  std::mutex queue_mutex_;
  std::vector<Start> queue_;  // guarded by queue_mutex_
  std::mutex run_mutex_;      // held on Gloo's thread; guards what follows
  std::vector<Start> running_;
  bool stopped_ = false;
};

}  // namespace cohort::collective
