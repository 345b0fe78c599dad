// Starts Gloo's sends and receives on the thread that also finishes them, and calls a function
// there when a time has come.
//
// A thread that starts one holds the lock of its connection while it writes to the socket. Gloo's
// thread does not sleep until that lock is free: as long as there is something to read, it asks for
// the lock again and again, also on the core that the holder of the lock needs. Calls of
// microseconds then take milliseconds.
//
// Gloo's own time limits are not used. A thread whose wait ends by such a limit closes all
// connections, and so waits for Gloo's thread, without a limit, while it holds the lock of one.
// Gloo's thread may be waiting for this lock, to start something.
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
  // Called on Gloo's thread, with what Gloo says, if a send or receive cannot be started.
  using Failed = std::function<void(int rank, const std::string& how)>;
  using Clock = std::chrono::steady_clock;
  // Called on Gloo's thread when the time of call_at has come. Returns when it is to be called
  // next.
  using Due = std::function<Clock::time_point()>;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  // The context is connected over TCP. Errors: ResourceExhausted (no descriptor).
  GlooLoop(gloo::Context& context, Failed failed, Due due);
  ~GlooLoop() override;

  // Lets Gloo's thread start them, in their order, and takes them out of `starts`. Has no effect
  // after stop().
  void start(std::vector<Start>& starts);
  // Sets the time of the next call of `due`, in place of an earlier one.
  void call_at(Clock::time_point time);
  // Starts nothing any more. To be called before Gloo's connections are closed, because the thread
  // that closes one waits for Gloo's thread with its lock held. Not to be called on Gloo's thread.
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
