// A thread that makes calls for its owner, one at a time, while the owner goes on.
//
//   WorkerThread thread_;                 // the last member: its end waits for the call under way
//   thread_.start([this] { fill(buffer_); });
//   ...
//   thread_.wait();                       // throws what the call threw
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

namespace cohort::internal {

// Thread safety: one thread at a time.
class WorkerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Call = std::function<void()>;

  // `purpose` goes on after "no thread "; `name` has at most 15 characters.
  // The thread sleeps between calls. Errors: ResourceExhausted (no thread to be had).
  WorkerThread(std::string_view purpose, const char* name);
  // Waits for the call under way, and drops its error.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Makes `call` on the thread. Only when none is under way.
  void start(Call call);
  // Waits until no call is under way; the second one returns whether that is so by the deadline.
  // Errors: of wait what the last call threw, each time until another one starts.
  void wait();
  bool wait_until(Clock::time_point deadline);
  // What the last call threw, once; null: nothing. Only when none is under way.
  std::exception_ptr take_error();

  // Leaves the thread to a call that does not come back, and which then must touch nothing of the
  // owner's; `ended` is called by the thread with what it throws, or null. Nothing more may be
  // started.
  void leave(std::function<void(const std::exception_ptr&)> ended);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
};

}  // namespace cohort::internal
