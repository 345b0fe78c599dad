#include "cohort/parameter_server/coordinator_core.h"

#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/structure_message.h"
#include "cohort/parameter_server/closure_message.h"

namespace cohort::internal {
namespace {

using distribute::coordinator::ClusterCoordinatorOptions;
using distribute::coordinator::WorkerState;
using std::chrono::steady_clock;

// How long one attempt to reach a lost worker waits.
constexpr std::chrono::seconds kRecoveryAttempt{10};

// Whether the call did not reach the worker, or the worker went away: not what a function threw, which
// comes with the name of the task where it ran. Or it came back so soon that nobody noticed.
bool is_loss(const std::exception_ptr& error) {
  if (rpc::detail_of(error).phase == kInputLost) return true;
  const ErrorRecord record = record_error(error);
  return record.task.empty() &&
         (record.code == Code::kUnavailable || record.code == Code::kCancelled);
}

}  // namespace

CoordinatorCore::CoordinatorCore(std::shared_ptr<ParameterServerCore> strategy,
                                 const ClusterCoordinatorOptions& options)
    : strategy_(std::move(strategy)),
      options_(options),
      queue_({.max_queued = static_cast<size_t>(options.max_queued),
              .first_id = strategy_->begin_closures(),
              .on_available = [this] { feed_all(); }}) {
  for (int i = 0; i < strategy_->num_workers(); ++i) workers_.push_back({.index = i});
}

std::shared_ptr<rpc::Channel> CoordinatorCore::channel(size_t worker) const {
  return strategy_->channel({kWorker, static_cast<int>(worker)});
}

std::shared_ptr<RemoteResult> CoordinatorCore::schedule(const std::string& function,
                                                        std::vector<uint64_t> inputs,
                                                        std::vector<Structure> arguments) {
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->inputs = std::move(inputs);
  closure->arguments = Structure::make_tuple(std::move(arguments));
  const auto result = closure->result;
  queue_.put(std::move(closure), steady_clock::now() + std::chrono::hours(1));
  return result;
}

uint64_t CoordinatorCore::make_input(const std::string& function) {
  Input input;
  std::vector<std::pair<size_t, int>> asked;
  {
    const std::lock_guard lock(mutex_);
    input = {next_input_++, function};
    inputs_.push_back(input);
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      Worker& state = workers_[worker];
      if (!state.is_alive) continue;  // it gets all inputs when it is back
      ++state.makes_inputs;
      asked.emplace_back(worker, state.losses);
    }
  }
  for (const auto& [worker, losses] : asked) send_inputs(worker, losses, {input});
  return input.id;
}

std::vector<WorkerState> CoordinatorCore::workers() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> states;
  for (const Worker& worker : workers_) {
    states.push_back({worker.is_alive, worker.in_flight, worker.done, worker.retried});
  }
  return states;
}

void CoordinatorCore::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  queue_.stop();
  strategy_->end_closures(queue_.next_id());
}

void CoordinatorCore::feed_all() {
  for (size_t worker = 0; worker < workers_.size(); ++worker) feed(worker);
}

void CoordinatorCore::feed(size_t worker) {
  while (true) {
    ClosurePtr closure;
    {
      const std::lock_guard lock(mutex_);
      Worker& state = workers_[worker];
      if (stopped_ || !state.is_alive || state.makes_inputs > 0) return;
      if (state.in_flight >= options_.window) return;
      closure = queue_.take(state.index);
      if (closure == nullptr) return;
      ++state.in_flight;
    }
    send(worker, closure);
  }
}

void CoordinatorCore::send(size_t worker, const ClosurePtr& closure) {
  const auto done = [self = shared_from_this(), worker, closure](rpc::CallResult result) {
    self->answered(worker, closure, std::move(result));
  };
  try {
    channel(worker)->start(
        "closures/run",
        encode(RunClosure{.function = closure->function,
                          .id = closure->id,
                          .forget_below = queue_.oldest_unfinished(),
                          .inputs = closure->inputs,
                          .arguments = closure->arguments}),
        {.timeout = options_.closure_timeout, .max_reply_bytes = kMostClosureBytes}, done);
  } catch (...) {  // arguments that cannot be sent
    done({std::current_exception(), {}});
  }
}

void CoordinatorCore::answered(size_t worker, const ClosurePtr& closure, rpc::CallResult result) {
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    --state.in_flight;
    if (result.error == nullptr) ++state.done;
    if (result.error != nullptr && is_loss(result.error)) ++state.retried;
  }
  const int index = static_cast<int>(worker);
  if (result.error == nullptr) {
    try {
      queue_.finished(index, *closure, to_structure(result.reply, "the result of a closure"));
    } catch (const Error&) {
      queue_.failed(index, *closure, std::current_exception());
    }
  } else if (is_loss(result.error)) {
    lose(worker, result.error);
    queue_.put_back(index, closure);
  } else {
    queue_.failed(index, *closure, result.error);
  }
  feed_all();
}

void CoordinatorCore::send_inputs(size_t worker, int losses, std::vector<Input> inputs) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || workers_[worker].losses != losses) return;
    if (inputs.empty()) --workers_[worker].makes_inputs;
  }
  if (inputs.empty()) return feed(worker);
  const Input first = inputs.front();
  inputs.erase(inputs.begin());
  channel(worker)->start("closures/make_input", encode(MakeInput{first.function, first.id}),
                         {.timeout = options_.closure_timeout, .wait_for_peer = true},
                         [self = shared_from_this(), worker, losses,
                          rest = std::move(inputs)](rpc::CallResult result) mutable {
                           // A function that fails is the error of the closures that use its input.
                           if (result.error != nullptr && is_loss(result.error))
                             return self->lose(worker, result.error);
                           self->send_inputs(worker, losses, std::move(rest));
                         });
}

void CoordinatorCore::lose(size_t worker, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    if (!state.is_alive || stopped_) return;
    state.is_alive = false;
    ++state.losses;
    state.lost_at = steady_clock::now();
  }
  log_warning("worker ", worker, " is lost (", record_error(error).message,
              "); its closures run on others, and it takes part again when it is back");
  call_back(worker);
}

// Until the worker answers, or its time is over.
void CoordinatorCore::call_back(size_t worker) {
  channel(worker)->start(
      "closures/hello", {.control = ""}, {.timeout = kRecoveryAttempt, .wait_for_peer = true},
      [self = shared_from_this(), worker](rpc::CallResult result) {
        std::vector<Input> inputs;
        int losses = 0;
        {
          const std::lock_guard lock(self->mutex_);
          Worker& state = self->workers_[worker];
          if (self->stopped_) return;
          if (result.error == nullptr) {
            state.is_alive = true;
            state.makes_inputs = 1;
            inputs = self->inputs_;
            losses = state.losses;
          } else if (steady_clock::now() - state.lost_at > self->options_.max_recovery) {
            log_warning("worker ", worker, " did not come back and is given up");
            return;
          }
        }
        if (result.error != nullptr) return self->call_back(worker);
        log_info("worker ", worker, " is back");
        self->send_inputs(worker, losses, std::move(inputs));
      });
}

}  // namespace cohort::internal
