// How workers are taken, given their inputs, lost and given up.
#include <algorithm>
#include <optional>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/observe/time_histogram.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/worker_errors.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/leadership/leadership_message.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

// How long one attempt to reach a lost worker waits, and between attempts at most.
constexpr std::chrono::seconds kAttempt{10};
constexpr std::chrono::minutes kLongestPause{1};

// A worker refuses to be taken only where it has obeyed a coordinator of the same generation or a
// later one.
std::exception_ptr taken_by_another(size_t worker, const std::exception_ptr& error) {
  return rpc::make_error(
      Code::kAborted,
      str("another coordinator has taken worker ", worker, ": ", record_error(error).message,
          ". If none runs, the worker remembers one that ran before the ps tasks were started "
          "again, on a machine whose clock is ahead of this one's; start the worker again, too"),
      "", rpc::detail_of(error));
}

}  // namespace

bool CoordinatorCore::is_current(size_t worker, SessionId session) const {
  return !stopped_ && workers_[worker].session == session;
}

void CoordinatorCore::take(size_t worker) {
  SessionId session = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    session = session_id(surroundings_.generation, next_session_++);
    workers_[worker].session = session;
    workers_[worker].next_in_session = 0;
    workers_[worker].phase = Phase::kTaking;
  }
  const auto to = channel(worker);
  // Asks whether its program has come to where closures may run.
  auto greet = if_alive([worker, session](CoordinatorCore& self) {
    self.channel(worker)->start(
        "closures/hello", {.control = ""}, {.timeout = kAttempt},
        self.if_alive([worker, session](CoordinatorCore& asked, const rpc::CallResult& result) {
          if (result.error != nullptr) return asked.not_taken(worker, session, result.error);
          asked.is_there(worker, session);
        }));
  });
  to->retry_now();
  to->start("leadership/take",
            encode(LeaderClaim{.generation = surroundings_.generation, .session = session}),
            {.timeout = kAttempt},
            if_alive([worker, session, greet](CoordinatorCore& self,
                                              const rpc::CallResult& result) mutable {
              if (result.error != nullptr) return self.not_taken(worker, session, result.error);
              greet();
            }));
}

void CoordinatorCore::is_there(size_t worker, SessionId session) {
  std::vector<Input> inputs;
  bool was_lost = false;
  std::optional<std::chrono::nanoseconds> was_absent;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    was_lost = !state.why.empty();
    if (was_lost && state.losses > 0) was_absent = clock_.now() - state.lost_at;
    state.phase = Phase::kMakesInputs;
    state.why.clear();
    state.take_pauses = kTakePauses;
    state.inputs_under_way = 1;
    inputs = inputs_;
  }
  if (was_lost) log_info("worker ", worker, " is back");
  if (was_absent) {
    static TimeHistogram& times = time_histogram("worker_recovery");
    times.add(*was_absent);
  }
  attend(worker, session);
  send_inputs(worker, session, std::move(inputs));
}

void CoordinatorCore::send_inputs(size_t worker, SessionId session, std::vector<Input> inputs) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    if (!state.is_there()) return;
    while (!inputs.empty() && !is_held(inputs.front().id)) inputs.erase(inputs.begin());
    if (inputs.empty() && --state.inputs_under_way == 0) state.phase = Phase::kReady;
  }
  if (inputs.empty()) {
    send_reads(worker);
    feed(worker);
    return;
  }
  Input first = inputs.front();
  inputs.erase(inputs.begin());
  channel(worker)->start(
      "closures/make_input", encode(MakeInput{first.function, first.id, session, first.kind}),
      {.timeout = options_.closure_timeout},
      if_alive([worker, session, first, rest = std::move(inputs)](
                   CoordinatorCore& self, const rpc::CallResult& result) mutable {
        if (result.error != nullptr &&
            is_fenced_by_later(result.error, self.surroundings_.generation))
          return self.end(result.error);
        if (const int ps = result.error == nullptr ? -1 : self.ps_watch_->about(result.error);
            ps >= 0) {
          // The last attempt's error is that of the closures that use it.
          if (++first.attempts < self.options_.max_closure_attempts) {
            rest.insert(rest.begin(), first);
          }
          const auto again = [worker, session, rest](CoordinatorCore& made_again) {
            made_again.send_inputs(worker, session, rest);
          };
          return self.ps_watch_->failed(ps, result.error, self.if_alive(again));
        }
        // A function that fails is the error of the closures that use its input.
        if (result.error != nullptr && is_loss(result.error, worker_task(worker))) {
          self.lose(worker, session, result.error);
          return;
        }
        bool is_held = false;  // nobody may want any more what was made meanwhile
        {
          const std::lock_guard lock(self.mutex_);
          is_held = self.is_held(first.id);
        }
        if (!is_held) self.send_drop(worker, session, first.id);
        self.send_inputs(worker, session, std::move(rest));
      }));
}

void CoordinatorCore::attend(size_t worker, SessionId session) {
  channel(worker)->start(
      "leadership/attend", encode(LeaderClaim{.generation = surroundings_.generation}),
      {.timeout = kAttendance},
      if_alive([worker, session](CoordinatorCore& self, const rpc::CallResult& result) {
        if (result.error != nullptr &&
            is_fenced_by_later(result.error, self.surroundings_.generation))
          return self.end(result.error);
        const bool is_over =
            result.error == nullptr || record_error(result.error).code == Code::kDeadlineExceeded;
        if (!is_over) {
          self.lose(worker, session, result.error);
          return;
        }
        {
          const std::lock_guard lock(self.mutex_);
          if (!self.is_current(worker, session)) return;
        }
        self.attend(worker, session);
      }));
}

bool CoordinatorCore::lose(size_t worker, SessionId session, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    if (!is_current(worker, session)) return false;
    if (!state.is_there()) return false;
    state.phase = Phase::kLost;
    state.lost_at = clock_.now();
    state.why = record_error(error).message;
    // At once for the first time; a worker that dies again and again is given time.
    if (++state.losses == 1) {
      state.pause_after_loss = std::chrono::nanoseconds(0);
      state.loss_pauses = {options_.worker_pause, kLongestPause};
    } else {
      state.pause_after_loss = state.loss_pauses.next();
    }
  }
  log_warning("worker ", worker, " is lost (", record_error(error).message,
              "); its closures run on others, and it takes part again when it is back");
  ps_watch_->refuse_worker(static_cast<int>(worker), session + 1,
                           if_alive([worker, session](CoordinatorCore& self) {
                             self.refused_everywhere(worker, session);
                           }));
  return true;
}

// What the worker still does in that session changes nothing any more.
void CoordinatorCore::refused_everywhere(size_t worker, SessionId session) {
  std::vector<Returned> returned;
  std::chrono::nanoseconds pause{0};
  bool is_hopeless = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    returned.swap(state.returned);
    state.phase = Phase::kTaking;
    is_hopeless = state.losses > options_.max_worker_losses;
    pause = state.pause_after_loss;
    state.take_pauses = kTakePauses;
  }
  for (const Returned& one : returned) one.give_to(queue_, static_cast<int>(worker));
  if (is_hopeless) return give_up(worker);
  wake_after(pause, if_alive([worker](CoordinatorCore& self) { self.take(worker); }));
}

void CoordinatorCore::not_taken(size_t worker, SessionId session, const std::exception_ptr& error) {
  if (rpc::detail_of(error).cause == Cause::kFenced) {
    return end(taken_by_another(worker, error));
  }
  std::chrono::nanoseconds pause{0};
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    if (state.why.empty()) {
      state.lost_at = clock_.now();
      state.why = record_error(error).message;
    }
    is_over = clock_.now() - state.lost_at > options_.max_recovery;
    pause = state.take_pauses.next();
  }
  if (is_over) return give_up(worker);
  wake_after(pause, if_alive([worker](CoordinatorCore& self) { self.take(worker); }));
}

void CoordinatorCore::give_up(size_t worker) {
  std::string all;
  bool is_last = true;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    workers_[worker].phase = Phase::kGivenUp;
    for (size_t i = 0; i < workers_.size(); ++i) {
      is_last = is_last && workers_[i].phase == Phase::kGivenUp;
      if (all.size() < 1000) {
        all += str(i == 0 ? "" : "; ", worker_task(i), ": ", workers_[i].losses,
                   " losses in a row, the last because ", workers_[i].why);
      }
    }
  }
  log_warning("worker ", worker, " did not come back for good and is given up");
  send_reads(worker);
  if (!is_last) return;
  end(rpc::make_error(Code::kUnavailable, str("no worker is left. ", all), "",
                      {.peer = to_string(worker_task(worker)),
                       .generation = surroundings_.generation,
                       .phase = "recovery"}));
}

}  // namespace cohort::internal
