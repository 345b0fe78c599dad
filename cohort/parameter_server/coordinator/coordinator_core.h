// What a ClusterCoordinator does: it keeps a window of closures on every worker that is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/parameter_server/coordinator/closure_queue.h"
#include "cohort/parameter_server/coordinator/coordinator_figures.h"
#include "cohort/parameter_server/coordinator/coordinator_options.h"
#include "cohort/parameter_server/coordinator/coordinator_surroundings.h"
#include "cohort/parameter_server/coordinator/input_handle.h"
#include "cohort/parameter_server/coordinator/ps_watch.h"
#include "cohort/parameter_server/coordinator/value_reads.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/named_figures.h"

namespace cohort::internal {

// A worker is taken with a session, makes its inputs, and gets closures. When it is lost, the ps
// tasks first refuse that session; then its closures go to others, and it is called back until it
// answers.
//
// Beside the clock's, no thread of its own: what goes on is driven by the answers of workers.
// Thread safety: any thread.
class CoordinatorCore : public std::enable_shared_from_this<CoordinatorCore> {
 public:
  using Options = distribute::coordinator::ClusterCoordinatorOptions;

  CoordinatorCore(CoordinatorSurroundings surroundings, const Options& options);

  // Takes the workers and watches all tasks; the first of the calls below does it, too.
  void start();

  const Options& options() const { return options_; }
  ClosureQueue& queue() { return queue_; }
  // An argument may be the result of another closure, which is put in when it is there.
  struct Argument {
    Structure value = {};
    std::shared_ptr<RemoteResult> result = nullptr;  // not null: instead of the value
    InputHandlePtr of_worker = nullptr;  // not null: instead, a value that make_input made
  };
  // Errors: those of ClosureQueue::put; InvalidArgument (an input of another coordinator); those of
  // check_sendable, of arguments.
  std::shared_ptr<RemoteResult> schedule(const std::string& function,
                                         const std::vector<InputHandlePtr>& inputs,
                                         std::vector<Argument> arguments);
  // A step of a loop, `arguments` as they are. Its errors are those of the loop, and do not name
  // it.
  std::shared_ptr<RemoteResult> schedule_step(const std::string& function, Structure arguments);
  // Lets every worker make an input, which they keep until the last handle and the last closure
  // that takes it have gone; as long `source`, which keeps the function, stays.
  InputHandlePtr make_input(const std::string& function, InputKind kind = InputKind::kIterator,
                            std::shared_ptr<const void> source = nullptr);
  // Copies of what all workers have as such a value, by worker; of one that is lost it comes when
  // that is back and has made it again. Their errors: that of what makes the value; Unavailable
  // (the worker is given up); what ends the coordinator. Errors: InvalidArgument (another
  // coordinator has made it).
  std::vector<std::shared_ptr<RemoteResult>> read_value(const InputHandlePtr& value);
  std::vector<distribute::coordinator::WorkerState> workers() const;
  // See ClosureQueue::pause.
  [[nodiscard]] std::shared_ptr<void> pause(ClosureQueue::Deadline deadline);
  // A ps task's error, or what ended the coordinator because of the same loss: waits for that.
  std::exception_ptr explained(const std::exception_ptr& error);
  // Says goodbye: nothing more is sent, and answers count no more. What workers still run changes
  // nothing any more: waits, two seconds at most, until the ps tasks refuse it. Then waits for what
  // workers of this process run, for options().end_timeout at most, unless a function of theirs is
  // what calls.
  void stop();

 private:
  enum class Phase {
    kTaking,       // asked to obey; also while it is away
    kMakesInputs,  // all that there are
    kReady,
    kLost,     // ps tasks learn that its session counts no more
    kGivenUp,  // it did not come back
  };
  // A closure of a session that is being refused: it runs again, or ends with the error.
  struct Returned {
    ClosurePtr closure;
    std::exception_ptr error;
    void give_to(ClosureQueue& queue, int worker) const;
  };
  // The pauses between attempts to take a worker.
  static constexpr Backoff kTakePauses{std::chrono::milliseconds(20),
                                       std::chrono::milliseconds(500)};
  struct Worker {
    Phase phase = Phase::kTaking;
    SessionId session = 0;
    uint64_t next_in_session = 0;  // of a closure
    int in_flight = 0;
    int inputs_under_way = 0;  // closures wait for them
    bool is_idle = false;      // in idle_
    int losses = 0;            // without a closure that has ended between them
    int64_t done = 0;
    int64_t retried = 0;
    rpc::Clock::Time lost_at = {};
    Backoff loss_pauses = kTakePauses;             // of losses in a row, from the second one on
    std::chrono::nanoseconds pause_after_loss{0};  // before it is taken again
    Backoff take_pauses = kTakePauses;
    std::vector<Returned> returned;
    std::string why;  // it was lost

    bool is_there() const { return phase == Phase::kReady || phase == Phase::kMakesInputs; }
    // A closure.
    bool can_take(int window) const {
      return phase == Phase::kReady && inputs_under_way == 0 && in_flight < window;
    }
    // Says that the worker of this number is away, why and since when; nothing if it is not.
    std::string away(size_t number, rpc::Clock::Time now) const;
  };
  struct Input {
    uint64_t id = 0;
    std::string function;
    InputKind kind = InputKind::kIterator;
    int attempts = 0;  // of one worker, to which a ps task did not answer
  };

  // The texts of all workers that are away, each with "; " before it.
  std::string all_away() const;
  // What calls that wait for a result of it say of that.
  void describe_wait(const ClosurePtr& closure);
  // Calls `work` after each such time, as long as it returns true.
  void repeat(std::chrono::nanoseconds every, std::function<bool(CoordinatorCore&)> work);
  // Forgets reads that nobody waits for, and tells the workers what nobody holds any more.
  // Returns whether there are inputs that somebody holds.
  bool drop_inputs();
  bool is_held(uint64_t input) const;  // with mutex_ held
  void send_drop(size_t worker, SessionId session, uint64_t input);
  void feed_idle(size_t closures);
  // Gives the worker what it can take. Returns false if that is nothing, whatever is queued.
  bool feed(size_t worker);
  // The place of a closure in the worker's order.
  struct Place {
    SessionId session = 0;
    uint64_t sequence = 0;
  };
  void send(size_t worker, const Place& place, const ClosurePtr& closure);
  // A call that failed may not have come: the closures behind it do not wait for it.
  void skip(size_t worker, const Place& place);
  void answered(size_t worker, const Place& place, const ClosurePtr& closure,
                rpc::CallResult result);
  // A closure that its worker may still run, which loses its session for it. When nothing of that
  // session changes anything any more, the closure runs again, or ends with its error if it is the
  // first of the session.
  void take_back(size_t worker, SessionId session, const std::exception_ptr& why,
                 Returned returned);
  void send_inputs(size_t worker, SessionId session, std::vector<Input> inputs);
  // Sends the reads that the worker's session has not been asked, if it has its values.
  void send_reads(size_t worker);
  void read_answered(const ValueRead& read, const rpc::CallResult& answer);

  void take(size_t worker);
  void is_there(size_t worker, SessionId session);
  void not_taken(size_t worker, SessionId session, const std::exception_ptr& error);
  void attend(size_t worker, SessionId session);
  // Returns whether it was not lost before.
  bool lose(size_t worker, SessionId session, const std::exception_ptr& error);
  void refused_everywhere(size_t worker, SessionId session);
  void give_up(size_t worker);
  void end(const std::exception_ptr& error);
  // Lets the ps tasks refuse what workers still run, for a while at most.
  void refuse_what_runs();

  // Callbacks of calls and timers must not keep the coordinator alive.
  template <class Fn>
  auto if_alive(Fn fn) {
    return [weak = weak_from_this(), fn = std::move(fn)](auto&&... arguments) mutable {
      if (const auto self = weak.lock()) fn(*self, std::forward<decltype(arguments)>(arguments)...);
    };
  }
  bool is_current(size_t worker, SessionId session) const;
  void wake_after(std::chrono::nanoseconds delay, std::function<void()> work);
  static TaskId worker_task(size_t worker);
  std::shared_ptr<rpc::Channel> channel(size_t worker) const;

  const CoordinatorSurroundings surroundings_;
  const Options options_;
  std::unique_ptr<rpc::SystemClock> own_clock_;
  rpc::Clock& clock_;
  ClosureQueue queue_;
  const std::shared_ptr<PsWatch> ps_watch_;
  CoordinatorFigures figures_;
  ValueReads reads_;

  mutable std::mutex mutex_;  // guards what follows; taken before the queue's
  std::vector<Worker> workers_;
  std::deque<size_t> idle_;  // have room and found nothing to run
  std::vector<Input> inputs_;
  std::map<uint64_t, std::shared_ptr<const void>> sources_;  // of inputs
  uint64_t next_input_ = 1;
  uint64_t next_session_;
  bool started_ = false;
  bool stopped_ = false;

  // Guards handles that have ended, perhaps with one of the other locks held: no other is taken
  // under this one.
  std::mutex unheld_mutex_;
  std::vector<uint64_t> unheld_;  // guarded by unheld_mutex_
};

}  // namespace cohort::internal
