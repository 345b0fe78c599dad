#include "cohort/parameter_server/coordinator/coordinator_core.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/parameter_server_core.h"

namespace cohort::internal {
namespace {

using distribute::coordinator::WorkerState;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long one attempt to reach a lost worker waits, and between attempts at most.
constexpr std::chrono::seconds kAttempt{10};
constexpr milliseconds kFirstRetry{20};
constexpr milliseconds kLongestRetry{500};
constexpr milliseconds kLongestPause{60'000};
constexpr std::chrono::seconds kAttendance{60};  // then the call is renewed

bool are_there(const std::vector<CoordinatorCore::Argument>& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const auto& argument) {
    return argument.result == nullptr || argument.result->status() == RemoteStatus::kReady;
  });
}

// Errors: those of results.
Structure values_of(const std::vector<CoordinatorCore::Argument>& arguments) {
  std::vector<Structure> values;
  values.reserve(arguments.size());
  for (const auto& argument : arguments) {
    values.push_back(argument.result == nullptr
                         ? argument.value
                         : argument.result->get(steady_clock::now(), "an argument"));
  }
  return Structure::make_tuple(std::move(values));
}

CoordinatorSurroundings surroundings_of(const std::shared_ptr<ParameterServerCore>& strategy) {
  CoordinatorSurroundings around;
  around.first_closure = strategy->begin_closures();
  around.generation = strategy->generation();
  around.num_workers = strategy->num_workers();
  around.num_ps = strategy->store().num_ps();
  around.channel = [strategy](const TaskId& task) { return strategy->channel(task); };
  around.last_checkpoint = [strategy] { return strategy->last_checkpoint(); };
  around.on_start = [strategy](const std::weak_ptr<CoordinatorCore>& core) {
    strategy->set_coordinator(core);
  };
  around.set_figure = strategy->figures();
  around.on_stop = [strategy](uint64_t next) { strategy->end_closures(next); };
  return around;
}

}  // namespace

CoordinatorCore::CoordinatorCore(const std::shared_ptr<ParameterServerCore>& strategy,
                                 const Options& options)
    : CoordinatorCore(surroundings_of(strategy), options) {}

CoordinatorCore::CoordinatorCore(CoordinatorSurroundings surroundings, const Options& options)
    : surroundings_(std::move(surroundings)),
      options_(options),
      own_clock_(surroundings_.clock == nullptr ? std::make_unique<rpc::SystemClock>() : nullptr),
      clock_(own_clock_ != nullptr ? *own_clock_ : *surroundings_.clock),
      queue_(queue_options()),
      ps_watch_(std::make_shared<PsWatch>(
          clock_, PsWatch::Options{.num_ps = surroundings_.num_ps,
                                   .generation = surroundings_.generation,
                                   .channel =
                                       [channel = surroundings_.channel](int ps) {
                                         return channel({kPs, ps});
                                       },
                                   .grace = options_.ps_grace,
                                   .tolerated_failures = options_.tolerated_ps_failures,
                                   .last_checkpoint = surroundings_.last_checkpoint})),
      workers_(static_cast<size_t>(surroundings_.num_workers)) {}

ClosureQueue::Options CoordinatorCore::queue_options() {
  return {.max_queued = static_cast<size_t>(options_.max_queued),
          .first_id = surroundings_.first_closure,
          .max_attempts = options_.max_closure_attempts,
          .patience = options_.closure_timeout + options_.max_recovery,
          .report_after = options_.report_after,
          .on_available = [this](size_t closures) { feed_hungry(closures); },
          .on_report = [this](const std::string& text) { report(text); }};
}

// Callbacks of calls and timers must not keep the coordinator alive.
template <class Fn>
auto CoordinatorCore::if_alive(Fn fn) {
  return [weak = weak_from_this(), fn = std::move(fn)](auto&&... arguments) mutable {
    if (const auto self = weak.lock()) fn(*self, std::forward<decltype(arguments)>(arguments)...);
  };
}

void CoordinatorCore::wake_after(std::chrono::nanoseconds delay, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) clock_.call_at(clock_.now() + delay, std::move(work));
}

std::shared_ptr<rpc::Channel> CoordinatorCore::channel(size_t worker) const {
  return surroundings_.channel({kWorker, static_cast<int>(worker)});
}

void CoordinatorCore::start() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(started_, true)) return;
  }
  if (surroundings_.on_start) surroundings_.on_start(weak_from_this());
  ps_watch_->start(
      if_alive([](CoordinatorCore& self, const std::exception_ptr& error) { self.end(error); }));
  for (size_t worker = 0; worker < workers_.size(); ++worker) take(worker);
  if (surroundings_.set_figure) tell_figures(0);
}

void CoordinatorCore::tell_figures(int64_t done_before) {
  constexpr size_t kMostWorkersByName = 32;
  const auto set = [&](const std::string& name, auto value) {
    surroundings_.set_figure(name, static_cast<double>(value));
  };
  set("closures queued", queue_.queued());
  set("closures in flight", queue_.in_flight());
  int64_t done = 0, retried = 0;
  const std::vector<WorkerState> states = workers();
  for (size_t i = 0; i < states.size(); ++i) {
    done += states[i].done;
    retried += states[i].retried;
    if (i >= kMostWorkersByName) continue;
    set(str("worker ", i, " in flight"), states[i].in_flight);
    set(str("worker ", i, " done"), states[i].done);
    set(str("worker ", i, " retried"), states[i].retried);
  }
  set("closures done", done);
  set("closures retried", retried);
  set("closures/s", done - done_before);
  wake_after(std::chrono::seconds(1),
             if_alive([done](CoordinatorCore& self) { self.tell_figures(done); }));
}

void CoordinatorCore::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  ps_watch_->stop();
  own_clock_.reset();
  queue_.stop();
  if (surroundings_.on_stop) surroundings_.on_stop(queue_.next_id());
}

void CoordinatorCore::end(const std::exception_ptr& error) {
  if (queue_.break_with(error)) log_warning(record_error(error).message);
}

void CoordinatorCore::report(const std::string& text) const {
  std::string away;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    for (size_t i = 0; i < workers_.size() && away.size() < 500; ++i) {
      const Worker& worker = workers_[i];
      if (worker.phase == Phase::kReady) continue;
      const auto age = clock_.now() - worker.lost_at;
      away += str("; worker ", i);
      if (worker.phase == Phase::kMakesInputs) {
        away += " makes its inputs";
      } else if (worker.why.empty()) {
        away += " has not come yet";
      } else {
        away += str(worker.phase == Phase::kGivenUp ? " is given up, lost " : " is lost since ",
                    std::chrono::duration_cast<std::chrono::seconds>(age).count(), " s (",
                    worker.why, ")");
      }
    }
  }
  log_warning(text, away);
}

std::shared_ptr<void> CoordinatorCore::pause(ClosureQueue::Deadline deadline) {
  std::shared_ptr<void> paused = queue_.pause(deadline);
  return {nullptr, [self = shared_from_this(), paused = std::move(paused)](void*) mutable {
            paused.reset();
          }};
}

std::exception_ptr CoordinatorCore::explained(const std::exception_ptr& error) {
  constexpr milliseconds kVerdict{1000};  // beyond the grace
  if (ps_watch_->about(error) < 0) return error;
  const std::exception_ptr end =
      queue_.wait_for_break(steady_clock::now() + options_.ps_grace + kVerdict);
  return end == nullptr ? error : end;
}

std::shared_ptr<RemoteResult> CoordinatorCore::schedule(const std::string& function,
                                                        std::vector<uint64_t> inputs,
                                                        std::vector<Structure> arguments) {
  std::vector<Argument> values;
  values.reserve(arguments.size());
  for (Structure& argument : arguments) values.push_back({.value = std::move(argument)});
  return schedule(function, std::move(inputs), std::move(values));
}

std::shared_ptr<RemoteResult> CoordinatorCore::schedule(const std::string& function,
                                                        std::vector<uint64_t> inputs,
                                                        std::vector<Argument> arguments) {
  constexpr std::chrono::hours kPatience{1};
  start();
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->inputs = std::move(inputs);
  const auto result = closure->result;
  closure->awaits_arguments = !are_there(arguments);
  if (!closure->awaits_arguments) closure->arguments = values_of(arguments);
  queue_.put(closure, steady_clock::now() + kPatience);
  if (!closure->awaits_arguments) return result;
  // Once more than there are results, so that none is the last before all have been asked.
  const auto left = std::make_shared<std::atomic<size_t>>(arguments.size() + 1);
  const auto one_is_there = [left, weak = weak_from_this(), closure,
                             arguments](const RemoteResult&) {
    if (left->fetch_sub(1) != 1) return;
    const auto self = weak.lock();
    if (self == nullptr) return;
    try {
      closure->arguments = values_of(arguments);
      self->queue_.ready(closure);
    } catch (const std::exception& error) {
      self->queue_.give_up(
          closure, make_error(Code::kCancelled,
                              str("'", closure->function,
                                  "' was not run: an argument, the result of another function, ",
                                  "is an error: ", error.what())));
    }
  };
  for (const Argument& argument : arguments) {
    if (argument.result != nullptr) {
      argument.result->on_end(one_is_there);
    } else {
      one_is_there(*result);
    }
  }
  one_is_there(*result);
  return result;
}

uint64_t CoordinatorCore::make_input(const std::string& function) {
  start();
  Input input;
  std::vector<std::pair<size_t, SessionId>> asked;
  {
    const std::lock_guard lock(mutex_);
    input = {next_input_++, function};
    inputs_.push_back(input);
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      Worker& state = workers_[worker];
      // Others get all inputs when they are taken.
      if (state.phase != Phase::kReady && state.phase != Phase::kMakesInputs) continue;
      ++state.inputs_under_way;
      asked.emplace_back(worker, state.session);
    }
  }
  for (const auto& [worker, session] : asked) send_inputs(worker, session, {input});
  return input.id;
}

std::vector<WorkerState> CoordinatorCore::workers() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> states;
  for (const Worker& worker : workers_) {
    const bool is_alive = worker.phase == Phase::kReady || worker.phase == Phase::kMakesInputs;
    states.push_back({is_alive, worker.in_flight, worker.done, worker.retried});
  }
  return states;
}

// ---- Closures.

void CoordinatorCore::feed_hungry(size_t closures) {
  std::vector<size_t> fed;
  {
    const std::lock_guard lock(mutex_);
    while (!hungry_.empty() && fed.size() < closures) {
      fed.push_back(hungry_.front());
      workers_[hungry_.front()].is_hungry = false;
      hungry_.pop_front();
    }
  }
  for (const size_t worker : fed) feed(worker);
}

void CoordinatorCore::feed(size_t worker) {
  while (true) {
    ClosurePtr closure;
    SessionId session = 0;
    {
      const std::lock_guard lock(mutex_);
      Worker& state = workers_[worker];
      if (stopped_ || state.phase != Phase::kReady || state.inputs_under_way > 0) return;
      if (state.in_flight >= options_.window) return;
      // Under the lock, so that no closure comes between the look and the place in the line.
      closure = queue_.take(static_cast<int>(worker));
      if (closure == nullptr) {
        if (!std::exchange(state.is_hungry, true)) hungry_.push_back(worker);
        return;
      }
      ++state.in_flight;
      session = state.session;
    }
    send(worker, session, closure);
  }
}

void CoordinatorCore::send(size_t worker, SessionId session, const ClosurePtr& closure) {
  const auto done =
      if_alive([worker, session, closure](CoordinatorCore& self, rpc::CallResult result) {
        self.answered(worker, session, closure, std::move(result));
      });
  try {
    channel(worker)->start("closures/run",
                           encode(RunClosure{.function = closure->function,
                                             .id = closure->id,
                                             .forget_below = queue_.oldest_unfinished(),
                                             .session = session,
                                             .inputs = closure->inputs,
                                             .arguments = closure->arguments}),
                           {.timeout = options_.closure_timeout,
                            .max_reply_bytes = kMostClosureBytes,
                            .same_host = true},
                           done);
  } catch (...) {  // arguments that cannot be sent
    auto refused = done;
    refused(rpc::CallResult{.error = std::current_exception(), .reply = {}});
  }
}

bool CoordinatorCore::is_fenced(const std::exception_ptr& error) const {
  const ErrorDetail detail = rpc::detail_of(error);
  return detail.phase == kFenced && detail.generation > surroundings_.generation;
}

bool CoordinatorCore::is_loss(const std::exception_ptr& error) const {
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.phase == kInputLost || detail.phase == kStartedAgain || detail.phase == kFenced) {
    return true;
  }
  const ErrorRecord record = record_error(error);
  if (record.code == Code::kCancelled) return detail.phase != kInFunction;
  return record.task.empty() && record.code == Code::kUnavailable;
}

void CoordinatorCore::answered(size_t worker, SessionId session, const ClosurePtr& closure,
                               rpc::CallResult result) {
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    --state.in_flight;
    if (result.error == nullptr) {
      ++state.done;
      state.losses = 0;
    }
  }
  const int index = static_cast<int>(worker);
  if (result.error == nullptr) {
    try {
      queue_.finished(index, *closure, to_structure(result.reply, "the result of a closure"));
    } catch (const Error&) {
      queue_.failed(index, *closure, std::current_exception());
    }
  } else if (is_fenced(result.error)) {
    end(result.error);
    queue_.put_back(index, closure);
  } else if (const int ps = ps_watch_->about(result.error); ps >= 0) {
    ps_watch_->failed(ps, result.error, if_alive([index, closure](CoordinatorCore& self) {
                        self.queue_.put_back(index, closure);
                      }));
  } else if (is_loss(result.error)) {
    give_back(worker, session, closure, result.error);
  } else {
    queue_.failed(index, *closure, result.error);
  }
  feed(worker);
}

// At once if the ps tasks refuse the session already, else when they do.
void CoordinatorCore::give_back(size_t worker, SessionId session, const ClosurePtr& closure,
                                const std::exception_ptr& error) {
  lose(worker, session, error);
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    ++state.retried;
    if (state.session == session && state.phase == Phase::kLost) {
      state.returned.push_back(closure);
      return;
    }
  }
  queue_.put_back(static_cast<int>(worker), closure);
}

// ---- Workers.

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
    workers_[worker].phase = Phase::kTaking;
  }
  const auto to = channel(worker);
  to->retry_now();
  to->start("leadership/take",
            encode(LeaderClaim{.generation = surroundings_.generation, .session = session}),
            {.timeout = kAttempt},
            if_alive([worker, session](CoordinatorCore& self, const rpc::CallResult& result) {
              if (result.error != nullptr) return self.not_taken(worker, session, result.error);
              self.taken(worker, session);
            }));
}

// Asks whether its program has come to where closures may run.
void CoordinatorCore::taken(size_t worker, SessionId session) {
  channel(worker)->start(
      "closures/hello", {.control = ""}, {.timeout = kAttempt},
      if_alive([worker, session](CoordinatorCore& self, const rpc::CallResult& result) {
        if (result.error != nullptr) return self.not_taken(worker, session, result.error);
        self.is_there(worker, session);
      }));
}

void CoordinatorCore::is_there(size_t worker, SessionId session) {
  std::vector<Input> inputs;
  bool was_lost = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    was_lost = !state.why.empty();
    state.phase = Phase::kMakesInputs;
    state.why.clear();
    state.pause = milliseconds(0);
    state.inputs_under_way = 1;
    inputs = inputs_;
  }
  if (was_lost) log_info("worker ", worker, " is back");
  attend(worker, session);
  send_inputs(worker, session, std::move(inputs));
}

void CoordinatorCore::send_inputs(size_t worker, SessionId session, std::vector<Input> inputs) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    if (state.phase != Phase::kMakesInputs && state.phase != Phase::kReady) return;
    if (inputs.empty() && --state.inputs_under_way == 0) state.phase = Phase::kReady;
  }
  if (inputs.empty()) return feed(worker);
  const Input first = inputs.front();
  inputs.erase(inputs.begin());
  channel(worker)->start(
      "closures/make_input", encode(MakeInput{first.function, first.id, session}),
      {.timeout = options_.closure_timeout},
      if_alive([worker, session, rest = std::move(inputs)](CoordinatorCore& self,
                                                           const rpc::CallResult& result) mutable {
        if (result.error != nullptr && self.is_fenced(result.error)) return self.end(result.error);
        // A function that fails is the error of the closures that use its input.
        if (result.error != nullptr && self.is_loss(result.error)) {
          return self.lose(worker, session, result.error);
        }
        self.send_inputs(worker, session, std::move(rest));
      }));
}

void CoordinatorCore::attend(size_t worker, SessionId session) {
  channel(worker)->start(
      "leadership/attend", encode(LeaderClaim{.generation = surroundings_.generation}),
      {.timeout = kAttendance},
      if_alive([worker, session](CoordinatorCore& self, const rpc::CallResult& result) {
        if (result.error != nullptr && self.is_fenced(result.error)) return self.end(result.error);
        const bool is_over =
            result.error == nullptr || record_error(result.error).code == Code::kDeadlineExceeded;
        if (!is_over) return self.lose(worker, session, result.error);
        {
          const std::lock_guard lock(self.mutex_);
          if (!self.is_current(worker, session)) return;
        }
        self.attend(worker, session);
      }));
}

void CoordinatorCore::lose(size_t worker, SessionId session, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    if (!is_current(worker, session)) return;
    if (state.phase != Phase::kReady && state.phase != Phase::kMakesInputs) return;
    state.phase = Phase::kLost;
    state.lost_at = clock_.now();
    state.why = record_error(error).message;
    // At once for the first time; a worker that dies again and again is given time.
    state.pause = ++state.losses == 1
                      ? milliseconds(0)
                      : std::min(kLongestPause, options_.worker_pause *
                                                    (int64_t{1} << std::min(state.losses - 2, 20)));
  }
  log_warning("worker ", worker, " is lost (", record_error(error).message,
              "); its closures run on others, and it takes part again when it is back");
  ps_watch_->refuse_worker(static_cast<int>(worker), session + 1,
                           if_alive([worker, session](CoordinatorCore& self) {
                             self.refused_everywhere(worker, session);
                           }));
}

// What the worker still does in that session changes nothing any more.
void CoordinatorCore::refused_everywhere(size_t worker, SessionId session) {
  std::vector<ClosurePtr> returned;
  milliseconds pause{0};
  bool is_hopeless = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, session)) return;
    Worker& state = workers_[worker];
    returned.swap(state.returned);
    state.phase = Phase::kTaking;
    is_hopeless = state.losses > options_.max_worker_losses;
    pause = state.pause;
    state.pause = kFirstRetry;
  }
  for (const ClosurePtr& closure : returned) queue_.put_back(static_cast<int>(worker), closure);
  if (is_hopeless) return give_up(worker);
  wake_after(pause, if_alive([worker](CoordinatorCore& self) { self.take(worker); }));
}

void CoordinatorCore::not_taken(size_t worker, SessionId session, const std::exception_ptr& error) {
  if (is_fenced(error)) return end(error);
  milliseconds pause{0};
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
    pause = std::max(kFirstRetry, state.pause);
    state.pause = std::min(kLongestRetry, 2 * pause);
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
        all += str(i == 0 ? "" : "; ", TaskId{kWorker, static_cast<int>(i)}, ": ",
                   workers_[i].losses, " losses in a row, the last because ", workers_[i].why);
      }
    }
  }
  log_warning("worker ", worker, " did not come back for good and is given up");
  if (!is_last) return;
  end(rpc::make_error(Code::kUnavailable, str("no worker is left. ", all), "",
                      {.peer = to_string(TaskId{kWorker, static_cast<int>(worker)}),
                       .generation = surroundings_.generation,
                       .phase = "recovery"}));
}

}  // namespace cohort::internal
