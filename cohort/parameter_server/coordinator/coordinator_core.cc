#include "cohort/parameter_server/coordinator/coordinator_core.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/variables/closure_context.h"
#include "cohort/parameter_server/variables/read_cache.h"

namespace cohort::internal {
namespace {

using distribute::coordinator::WorkerState;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::hours kMostWait{1};  // for room in the queue
constexpr std::chrono::seconds kDropInputsEvery{1};
constexpr std::chrono::seconds kTellEvery{1};

bool are_there(const std::vector<CoordinatorCore::Argument>& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const auto& argument) {
    return argument.result == nullptr || argument.result->status() == RemoteStatus::kReady;
  });
}

// Null: none.
std::shared_ptr<RemoteResult> failed_one_of(
    const std::vector<CoordinatorCore::Argument>& arguments) {
  for (const auto& argument : arguments) {
    if (argument.result != nullptr && argument.result->status() == RemoteStatus::kAborted) {
      return argument.result;
    }
  }
  return nullptr;
}

// One argument is the function's input as it is, as in Strategy::run: a structure's members are
// what the function takes, or it takes the structure. Several are a tuple.
// Errors: those of results.
Structure values_of(const std::vector<CoordinatorCore::Argument>& arguments) {
  std::vector<Structure> values;
  values.reserve(arguments.size());
  for (const auto& argument : arguments) {
    values.push_back(argument.result == nullptr
                         ? argument.value
                         : argument.result->get(steady_clock::now(), "an argument"));
  }
  return values.size() == 1 ? std::move(values[0]) : Structure::make_tuple(std::move(values));
}

// The number of an input. Workers would look in vain for another coordinator's, since each counts
// its own.
// Errors: InvalidArgument (another coordinator has made it; names the function).
uint64_t own_input(const std::weak_ptr<const void>& coordinator, const InputHandlePtr& input,
                   const std::string& function) {
  if (input->is_made_by(coordinator)) return input->id();
  throw InvalidArgumentError(str(
      "schedule: '", function,
      "' takes an iterator, or a value of each worker, that another ClusterCoordinator has made, "
      "or an earlier one of this strategy; make it with this coordinator"));
}

// Waits for functions of the program in workers of this process: they may refer to objects that end
// next.
void wait_for_functions(const CoordinatorSurroundings& around, milliseconds end_timeout,
                        SessionId below) noexcept {
  constexpr milliseconds kSaysSo{2000};
  if (around.end_functions == nullptr) return;
  const bool is_one_of_them = current_closure() != nullptr;
  const auto now = steady_clock::now();
  const auto limit = is_one_of_them ? now : now + end_timeout;
  try {
    std::string left = around.end_functions(below, std::min(limit, now + kSaysSo));
    if (left.empty() || is_one_of_them) return;
    const double seconds = std::chrono::duration<double>(end_timeout).count();
    if (end_timeout > kSaysSo) {
      log_warning("the coordinator ends, and waits for functions of the program, ", seconds,
                  " s at most (end_timeout): ", left);
      left = around.end_functions(below, limit);
    }
    if (left.empty()) return;
    log(logging::Level::kError,
        "the coordinator has ended, although functions of the program still run, for which it has "
        "waited for ",
        seconds, " s (end_timeout): ", left,
        "; the objects that they refer to must stay until they have ended");
  } catch (const std::exception& error) {
    log(logging::Level::kError,
        "the coordinator has ended without waiting for functions of the program: ", error.what());
  }
}

}  // namespace

CoordinatorCore::CoordinatorCore(CoordinatorSurroundings surroundings, const Options& options)
    : surroundings_(std::move(surroundings)),
      options_(options),
      own_clock_(surroundings_.clock == nullptr ? std::make_unique<rpc::SystemClock>() : nullptr),
      clock_(own_clock_ != nullptr ? *own_clock_ : *surroundings_.clock),
      queue_({.max_queued = static_cast<size_t>(options_.max_queued),
              .first_id = surroundings_.first.closure,
              .max_attempts = options_.max_closure_attempts,
              .patience = options_.closure_timeout + options_.max_recovery,
              .report_after = options_.report_after,
              .on_available = [this](size_t closures) { feed_idle(closures); },
              .on_report =
                  [this](const std::string& text) {
                    {
                      const std::lock_guard lock(mutex_);
                      if (stopped_) return;
                    }
                    log_warning(text, all_away());
                  }}),
      ps_watch_(std::make_shared<PsWatch>(
          clock_, PsWatch::Options{.num_ps = surroundings_.num_ps,
                                   .generation = surroundings_.generation,
                                   .channel =
                                       [channel = surroundings_.channel](int ps) {
                                         return channel({kPs, ps});
                                       },
                                   .grace = options_.ps_grace,
                                   .tolerated_failures = options_.tolerated_ps_failures,
                                   .last_checkpoint = surroundings_.last_checkpoint,
                                   .failure_told_by = surroundings_.failure_told_by})),
      figures_(surroundings_, options_, queue_, clock_),
      workers_(static_cast<size_t>(surroundings_.num_workers)),
      next_session_(surroundings_.first.session) {}

void CoordinatorCore::wake_after(std::chrono::nanoseconds delay, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) clock_.call_at(clock_.now() + delay, std::move(work));
}

void CoordinatorCore::repeat(std::chrono::nanoseconds every,
                             std::function<bool(CoordinatorCore&)> work) {
  wake_after(every, if_alive([every, work = std::move(work)](CoordinatorCore& self) {
               if (work(self)) self.repeat(every, work);
             }));
}

TaskId CoordinatorCore::worker_task(size_t worker) { return {kWorker, static_cast<int>(worker)}; }

std::shared_ptr<rpc::Channel> CoordinatorCore::channel(size_t worker) const {
  return surroundings_.channel(worker_task(worker));
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
  const auto tell = [](CoordinatorCore& self) {
    self.figures_.tell(self.workers());
    return true;
  };
  const auto record = [](CoordinatorCore& self) {
    self.figures_.record(self.workers());
    return true;
  };
  if (figures_.are_told() && tell(*this)) repeat(kTellEvery, tell);
  if (figures_.are_recorded() && record(*this)) repeat(options_.summary_every, record);
}

void CoordinatorCore::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  refuse_what_runs();
  figures_.finish(workers());
  ps_watch_->stop();
  own_clock_.reset();
  queue_.stop();
  reads_.end(std::make_exception_ptr(CancelledError("the coordinator has ended")));
  CoordinatorNumbers next{.closure = queue_.next_id()};
  {
    const std::lock_guard lock(mutex_);
    next.session = next_session_;
  }
  wait_for_functions(surroundings_, options_.end_timeout,
                     session_id(surroundings_.generation, next.session));
  if (surroundings_.on_stop) surroundings_.on_stop(next);
}

// Else a late push would be in what the program restores or saves next.
void CoordinatorCore::refuse_what_runs() {
  constexpr std::chrono::seconds kPatience{2};
  std::vector<std::pair<int, SessionId>> running;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < workers_.size(); ++i) {
      const Worker& worker = workers_[i];
      const bool runs =
          worker.in_flight > 0 || worker.inputs_under_way > 0 || !worker.returned.empty();
      if (runs) running.emplace_back(static_cast<int>(i), worker.session);
    }
  }
  if (running.empty()) return;
  const auto left = std::make_shared<std::atomic<size_t>>(running.size());
  const auto all = std::make_shared<std::promise<void>>();
  for (const auto& [worker, session] : running) {
    ps_watch_->refuse_worker(worker, session + 1, [left, all] {
      if (left->fetch_sub(1) == 1) all->set_value();
    });
  }
  all->get_future().wait_for(kPatience);
}

void CoordinatorCore::end(const std::exception_ptr& error) {
  if (queue_.break_with(error)) log_warning(record_error(error).message);
  reads_.end(error);
}

std::shared_ptr<void> CoordinatorCore::pause(ClosureQueue::Deadline deadline) {
  refuse_in_closure("save");
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

std::shared_ptr<RemoteResult> CoordinatorCore::schedule_step(const std::string& function,
                                                             Structure arguments) {
  start();
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->arguments = std::move(arguments);
  closure->names_itself = false;
  queue_.put(closure, steady_clock::now() + kMostWait);
  return closure->result;
}

std::shared_ptr<RemoteResult> CoordinatorCore::schedule(const std::string& function,
                                                        const std::vector<InputHandlePtr>& inputs,
                                                        std::vector<Argument> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].result != nullptr || arguments[i].of_worker != nullptr) continue;
    arguments[i].value.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
      check_sendable(leaf, str("schedule: argument [", i, "]", path, " of '", function, "'"));
    });
    arguments[i].value = unshared(std::move(arguments[i].value));  // it is sent later
  }
  start();
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->caches_reads = cached_reads() != nullptr;
  closure->holds = inputs;
  for (const InputHandlePtr& input : inputs)
    closure->inputs.push_back(own_input(weak_from_this(), input, function));
  const auto result = closure->result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const InputHandlePtr& of_worker = arguments[i].of_worker;
    if (of_worker == nullptr) continue;
    const bool is_only = arguments.size() == 1;
    closure->values.push_back({is_only ? WorkerValue::kOnlyArgument : i,
                               own_input(weak_from_this(), of_worker, function)});
    closure->holds.push_back(of_worker);
  }
  closure->awaits_arguments = !are_there(arguments);
  if (!closure->awaits_arguments) closure->arguments = values_of(arguments);
  queue_.put(closure, steady_clock::now() + kMostWait);
  describe_wait(closure);
  if (!closure->awaits_arguments) return result;
  // Once more than there are results, so that none is the last before all have been asked.
  const auto left = std::make_shared<std::atomic<size_t>>(arguments.size() + 1);
  const auto one_is_there = [left, weak = weak_from_this(), closure,
                             arguments](const RemoteResult&) {
    if (left->fetch_sub(1) != 1) return;
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (const auto failed = failed_one_of(arguments)) {
      RootFailure root = failed->root();
      const std::string before =
          root.between == 0 ? "" : str(" because of one ", root.between, " functions before it");
      const std::string text = str("'", closure->function,
                                   "' was not run: an argument, the result of another function, ",
                                   "is an error", before, ": ", root.text);
      ++root.between;
      return self->queue_.give_up(closure, make_error(Code::kCancelled, text), std::move(root));
    }
    closure->arguments = values_of(arguments);
    self->queue_.ready(closure);
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

InputHandlePtr CoordinatorCore::make_input(const std::string& function, InputKind kind,
                                           std::shared_ptr<const void> source) {
  start();
  Input input;
  bool is_first = false;
  std::vector<std::pair<size_t, SessionId>> asked;
  {
    const std::lock_guard lock(mutex_);
    input = {next_input_++, function, kind};
    sources_.emplace(input.id, std::move(source));
    is_first = inputs_.empty();
    inputs_.push_back(input);
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      Worker& state = workers_[worker];
      // Others get all inputs when they are taken.
      if (!state.is_there()) continue;
      ++state.inputs_under_way;
      asked.emplace_back(worker, state.session);
    }
  }
  for (const auto& [worker, session] : asked) send_inputs(worker, session, {input});
  if (is_first) {
    repeat(kDropInputsEvery, [](CoordinatorCore& self) { return self.drop_inputs(); });
  }
  const auto let_go = [weak = weak_from_this()](uint64_t id) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const std::lock_guard lock(self->unheld_mutex_);
    self->unheld_.push_back(id);
  };
  return std::make_shared<InputHandle>(input.id, weak_from_this(), let_go);
}

// Handles end with any lock held, so that they cannot tell workers themselves.
bool CoordinatorCore::drop_inputs() {
  reads_.drop_unwanted();
  std::vector<uint64_t> dropped;
  {
    const std::lock_guard lock(unheld_mutex_);
    dropped.swap(unheld_);
  }
  if (dropped.empty()) return true;
  bool is_any_left = false;
  std::vector<decltype(sources_)::node_type> sources;  // which end without the lock
  std::vector<std::pair<size_t, SessionId>> told;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(inputs_, [&](const Input& input) {
      return std::find(dropped.begin(), dropped.end(), input.id) != dropped.end();
    });
    for (const uint64_t id : dropped) sources.push_back(sources_.extract(id));
    is_any_left = !inputs_.empty();
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      const Worker& state = workers_[worker];
      // Others forget all inputs when they are taken.
      if (!state.is_there()) continue;
      told.emplace_back(worker, state.session);
    }
  }
  for (const auto& [worker, session] : told) {
    for (const uint64_t id : dropped) send_drop(worker, session, id);
  }
  return is_any_left;
}

bool CoordinatorCore::is_held(uint64_t input) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [input](const Input& one) { return one.id == input; });
}

void CoordinatorCore::send_drop(size_t worker, SessionId session, uint64_t input) {
  channel(worker)->start("closures/drop_input",
                         encode(MakeInput{.function = "", .input = input, .session = session}),
                         {.timeout = options_.closure_timeout}, [](const rpc::CallResult&) {});
}

std::vector<WorkerState> CoordinatorCore::workers() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> states;
  for (const Worker& worker : workers_) {
    states.push_back({worker.is_there(), worker.in_flight, worker.done, worker.retried});
  }
  return states;
}

}  // namespace cohort::internal
