// The closures (scheduled functions) that wait for a worker or are on one, and the error protocol
// of a coordinator: no sockets, no threads.
//
//   queue.put(closure, deadline);                       // the program
//   while (auto closure = queue.take(worker)) ...       // whoever feeds the workers
//   queue.finished(*closure);   // or failed(), or put_back() where its worker was lost
//   queue.join(deadline);                               // the program
#pragma once

#include <atomic>
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
#include <unordered_map>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/input_handle.h"
#include "cohort/parameter_server/coordinator/remote_result.h"

namespace cohort::internal {

struct Closure {
  std::string function;                    // its name in every task
  std::vector<uint64_t> inputs;            // of its worker
  Structure arguments;                     // a tuple
  std::vector<WorkerValue> values = {};    // of its worker, in the place of arguments
  std::vector<InputHandlePtr> holds = {};  // so that workers have the inputs and values
  std::shared_ptr<RemoteResult> result = std::make_shared<RemoteResult>();
  bool awaits_arguments = false;  // it is handed out after ready()
  bool names_itself = true;       // in its error
  bool caches_reads = false;      // RunClosure
  uint64_t id = 0;      // given by put(); a retry keeps it, so that it can be told from a new one
  uint64_t number = 0;  // for people: 1 for the queue's first
  int attempts = 0;     // how often a worker took it
  uint64_t epoch = 0;   // the queue's own: which join() waits for it
};
using ClosurePtr = std::shared_ptr<Closure>;

// How one closure failed.
struct ClosureError {
  uint64_t closure = 0;  // 0: no closure, but what ended them all
  std::string function;
  int worker = -1;
  std::exception_ptr error;
};

// The first error of a closure ends a run: what is queued is cancelled, and put(), join() or
// done(), whichever comes first, cancels the results of what has begun, waits for it, and throws
// the error once. Then the queue is as new. A closure that has begun ends: where its worker was
// lost, on another one, also in a run that ends. So there is a moment, in pause(), at which all
// that any closure has done is whole.
// Thread safety: any thread.
class ClosureQueue {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  struct Options {
    // put() blocks while so many closures wait. 0: no limit.
    size_t max_queued = size_t{256} << 10;
    // The number of the first closure; later ones have higher numbers.
    uint64_t first_id = 1;
    // A closure that was lost with so many workers fails.
    int max_attempts = 10;
    // Calls that wait end with DeadlineExceeded once no closure has ended for so long.
    std::chrono::nanoseconds patience = std::chrono::hours(2);
    // A call that waits says so, each time that no closure has ended for so long.
    std::chrono::nanoseconds report_after = std::chrono::seconds(30);
    // All without the lock. So many closures may have become available.
    std::function<void(size_t)> on_available = nullptr;
    std::function<void(const std::string&)> on_report = nullptr;
  };
  explicit ClosureQueue(Options options);

  // Errors: that of an earlier closure, DeadlineExceeded (the queue stays full), Cancelled
  // (stopped).
  void put(ClosurePtr closure, Deadline deadline);
  // The arguments of a closure that awaits them are there; or it cannot run, which is no error of
  // the run.
  void ready(const ClosurePtr& closure);
  void give_up(const ClosurePtr& closure, const std::exception_ptr& why, RootFailure root = {});

  // The next closure for this worker; nullptr where there is none.
  ClosurePtr take(int worker);
  // What became of a taken closure; exactly one of these is called. `worker` had it.
  void finished(int worker, const Closure& closure, Structure value);
  void failed(int worker, const Closure& closure, std::exception_ptr error);
  // The worker was lost: another runs the closure, before those that are queued.
  void put_back(int worker, ClosurePtr closure);

  // Waits until no closure is queued or under way. Closures of put() calls that begin later do not
  // count. Errors: the first of a closure since one was last thrown; DeadlineExceeded (says what is
  // queued and under way, where and for how long); Cancelled (stopped).
  void join(Deadline deadline = Deadline::max());
  // Errors: that of a closure.
  bool done();

  // Waits until every closure that has begun has ended, and lets none begin as long as the result
  // lives. Errors: DeadlineExceeded; what breaks the queue meanwhile.
  [[nodiscard]] std::shared_ptr<void> pause(Deadline deadline);

  // Nothing can run any more: all closures end with this error, and every later call that throws
  // errors throws it, each time. Only the first has an effect; returns whether it is.
  bool break_with(const std::exception_ptr& error);

  // The error of break_with, if it comes in time.
  std::exception_ptr wait_for_break(Deadline deadline);

  // For calls that wait for a result since `began`: says so, as those above do, where no closure
  // has ended for long.
  void report_wait(const std::string& what, Clock::time_point began) const;
  // What a closure waits for, for people; by its id.
  std::string state_of(uint64_t id) const;

  // No closure of a lower number will be taken again.
  uint64_t oldest_unfinished() const;
  // The number of the next closure. Takes no lock.
  uint64_t next_id() const { return next_id_; }
  size_t queued() const;
  size_t in_flight() const;
  // All errors of closures since put(), join() or done() last threw one, in the order in which they
  // came; if there are none, those before.
  std::vector<ClosureError> errors() const;

  // Everything is cancelled, waiting calls end with Cancelled, and so do later ones.
  void stop();

 private:
  struct Flight {
    ClosurePtr closure;
    int worker = -1;
    Clock::time_point since;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Closures = std::vector<ClosurePtr>;

  // Waits until `ready()`, at most until `deadline` and as long as closures end. Returns whether it
  // is.
  bool wait(Lock& lock, Deadline deadline, const char* what, FunctionRef<bool()> ready);
  // Throws the error that is pending, if there is one.
  void throw_pending(Lock& lock, Deadline deadline);
  void check_running() const;
  void check_not_broken() const;
  // Takes a closure off its worker.
  ClosurePtr land(int worker, const Closure& closure);
  void count_end(const Closure& closure);
  // Ends what is queued and has not begun; the results are to be failed once the lock is free.
  void drop_queued(Closures& dropped);
  // The same for all.
  Closures drop_all();
  Closures in_flight_closures() const;
  void tell() { changed_.notify_all(); }
  void offer(size_t closures) const {
    if (options_.on_available) options_.on_available(closures);
  }
  bool all_ended(uint64_t epoch) const;
  std::string state() const;
  // What is to be reported of a wait; nothing where a closure has ended lately.
  std::string idle_text(const std::string& what, Clock::time_point began) const;
  static double in_seconds(std::chrono::nanoseconds duration);  // 61.2

  const Options options_;
  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable changed_;
  std::deque<ClosurePtr> queue_;  // those that have begun before the others
  std::unordered_map<const Closure*, ClosurePtr> awaiting_;
  std::unordered_map<const Closure*, Flight> flights_;
  size_t begun_ = 0;               // closures that a worker has taken and that have not ended
  std::atomic<uint64_t> next_id_;  // changed with the lock
  uint64_t epoch_ = 0;             // how many joins have begun
  std::set<uint64_t> live_;        // numbers of closures that have not ended
  std::map<uint64_t, size_t> unfinished_;  // closures of each epoch that have not ended
  Clock::time_point last_end_ = Clock::now();
  std::vector<ClosureError> errors_;
  std::vector<ClosureError> thrown_;
  std::exception_ptr broken_;
  bool cancelling_ = false;  // a thread is about to throw an error
  int pauses_ = 0;
  int waiters_ = 0;
  bool stopped_ = false;
};

}  // namespace cohort::internal
