// The closures (scheduled functions) that wait for a worker or are on one, and the error protocol of a
// coordinator: no sockets, no threads.
//
//   queue.put(closure, deadline);                       // the program
//   while (auto closure = queue.take(worker)) ...       // whoever feeds the workers
//   queue.finished(*closure);   // or failed(), or put_back() where its worker was lost
//   queue.join(deadline);                               // the program
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/structure.h"
#include "cohort/parameter_server/remote_result.h"

namespace cohort::internal {

struct Closure {
  std::string function;          // its name in every task
  std::vector<uint64_t> inputs;  // of its worker
  Structure arguments;           // a tuple
  std::shared_ptr<RemoteResult> result = std::make_shared<RemoteResult>();
  uint64_t id = 0;     // given by put(); a retry keeps it, so that it can be told from a new one
  int attempts = 0;    // how often a worker took it
  uint64_t epoch = 0;  // the queue's own: which join() waits for it
};
using ClosurePtr = std::shared_ptr<Closure>;

// How one closure failed.
struct ClosureError {
  uint64_t closure = 0;
  std::string function;
  int worker = -1;
  std::exception_ptr error;
};

// Only closures of put() count for join() and done(). A worker's own closures, which make its datasets
// and other resources, are taken before them.
//
// The first error of a closure ends a run: nothing more is handed out, and put(), join() or done(),
// whichever comes first, cancels what is under way, waits for it, cancels what is queued, and throws
// the error once. Then the queue is as new.
// Thread safety: any thread.
class ClosureQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Options {
    // put() blocks while so many closures wait. 0: no limit.
    size_t max_queued = size_t{256} << 10;
    // Of the first closure; later ones have higher numbers.
    uint64_t first_id = 1;
    // Called, without the lock, when closures may have become available.
    std::function<void()> on_available = nullptr;
    // Called, without the lock, to make workers give up the closures that are on them; each is then
    // reported as failed or finished.
    std::function<void()> on_cancel = nullptr;
  };
  explicit ClosureQueue(Options options);

  // Errors: that of an earlier closure, DeadlineExceeded (the queue stays full), Cancelled (stopped).
  void put(ClosurePtr closure, Deadline deadline);
  // For one worker alone. Never blocks.
  void put_for(int worker, ClosurePtr closure);

  // The next closure for this worker; nullptr where there is none.
  ClosurePtr take(int worker);
  // What became of a taken closure; exactly one of these is called. `worker` had it.
  void finished(int worker, const Closure& closure, Structure value);
  void failed(int worker, const Closure& closure, std::exception_ptr error);
  // The worker was lost: another runs the closure, before those that are queued; closures that are
  // the worker's own wait for its return.
  void put_back(int worker, ClosurePtr closure);

  // Waits until no closure is queued or under way. Closures of put() calls that begin later do not
  // count. Errors: the first of a closure since one was last thrown; DeadlineExceeded (says how many
  // are queued and under way); Cancelled (stopped).
  void join(Deadline deadline);
  // Errors: that of a closure.
  bool done();

  // No closure of a lower number will be taken again.
  uint64_t oldest_unfinished() const;
  // Of the next closure.
  uint64_t next_id() const;
  size_t queued() const;
  size_t in_flight() const;
  // All errors since put(), join() or done() last threw one, in the order in which they came.
  std::vector<ClosureError> errors() const;

  // Everything queued is cancelled, waiting calls end with Cancelled, and so do later ones.
  void stop();

 private:
  enum class Kind { kProgram, kWorkers };
  struct Flight {
    int worker;
    Kind kind;
  };

  // Throws the error that is pending, if there is one.
  void throw_pending(std::unique_lock<std::mutex>& lock, Deadline deadline);
  void check_running() const;
  // Takes a closure off its worker. Returns whose it was.
  Kind land(int worker, const Closure& closure);
  void count_end(const Closure& closure);
  bool all_ended(uint64_t epoch) const;
  std::string state() const;

  const Options options_;
  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable changed_;
  std::deque<ClosurePtr> queue_;
  std::map<int, std::deque<ClosurePtr>> of_worker_;
  std::map<const Closure*, Flight> flights_;
  size_t program_in_flight_ = 0;
  uint64_t next_id_;
  uint64_t epoch_ = 0;                     // how many joins have begun
  std::set<uint64_t> live_;                // numbers of the program's closures that have not ended
  std::map<uint64_t, size_t> unfinished_;  // closures of each epoch that have not ended
  std::vector<ClosureError> errors_;
  bool cancelling_ = false;  // a thread is about to throw an error
  bool stopped_ = false;
};

}  // namespace cohort::internal
