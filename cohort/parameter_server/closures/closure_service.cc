#include "cohort/parameter_server/closures/closure_service.h"

#include <algorithm>
#include <future>
#include <utility>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/core/forced_unwind.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/parameter_server/cluster/lost_ps.h"
#include "cohort/parameter_server/variables/closure_context.h"
#include "cohort/parameter_server/variables/read_cache.h"

namespace cohort::internal {
namespace {

enum ClosureMethod : size_t { kRun, kMakeInput, kHello, kSkip, kDropInput, kReadValue };
constexpr rpc::MethodSpec kClosureMethods[] = {
    {.name = "run",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostClosureBytes,
     .fenced = false},
    {.name = "make_input", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "hello", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "skip", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "drop_input", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "read_value", .callers = rpc::Role::kCoordinator, .fenced = false},
};

// Whether a function's error says that another task has given up a call of it, or this one has
// because it ends.
bool is_given_up_call(const std::exception_ptr& thrown, const TaskId& self) {
  const ErrorRecord error = record_error(thrown);
  if (error.code != Code::kCancelled) return false;
  const bool is_anothers = !error.task.empty() && error.task != to_string(self);
  return is_anothers || rpc::detail_of(thrown) != ErrorDetail{};
}

// Whether a function that makes an input has thrown without having failed itself, so that the
// coordinator is to let it run again, or to take the worker again.
bool is_to_run_again(const std::exception_ptr& thrown, const TaskId& self, int num_ps) {
  const Cause cause = rpc::detail_of(thrown).cause;
  return cause == Cause::kFenced || cause == Cause::kStartedAgain ||
         unanswering_ps(thrown, num_ps) >= 0 || is_given_up_call(thrown, self);
}

// The error of the closures that take what the function was to make.
std::exception_ptr error_of_input(const std::string& function, const std::exception_ptr& thrown) {
  const ErrorRecord error = record_error(thrown);
  return rpc::make_error(
      error.code,
      str("the input of this closure could not be made by ", quoted(function), ": ", error.message),
      error.task, {.cause = Cause::kInputFailed});
}

}  // namespace

ClosureService::ClosureService(const train::ClusterSpec& cluster, TaskId self,
                               std::shared_ptr<CoordinatorFence> fence)
    : self_(std::move(self)),
      fence_(std::move(fence)),
      generator_(self_.index),
      figures_(cluster, self_),
      pool_("closures", 1) {
  // What an earlier coordinator's program had here goes.
  fence_->on_new_generation([this](int64_t) { pool_.schedule([this] { drop_inputs(); }); });
}

ClosureService::~ClosureService() { fence_->on_new_generation(nullptr); }

void ClosureService::add(const std::weak_ptr<WorkerSide>& side) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sides_, [](const auto& one) { return one.expired(); });
  sides_.push_back(side);
}

void ClosureService::drop_inputs_below(SessionId session) {
  pool_.schedule([this, session] {
    if (inputs_session_ < session) drop_inputs();
  });
}

// The last input may hold the strategy, whose end is that of a server and of this service.
void ClosureService::drop_inputs() { const auto dropped = std::exchange(inputs_, {}); }

bool ClosureService::wait_until_idle(std::chrono::steady_clock::time_point deadline) {
  const auto reached = std::make_shared<std::promise<void>>();
  pool_.schedule([reached] { reached->set_value(); });
  return reached->get_future().wait_until(deadline) == std::future_status::ready;
}

std::shared_ptr<WorkerSide> ClosureService::side_of(int64_t generation) const {
  std::shared_ptr<WorkerSide> latest;
  const std::lock_guard lock(mutex_);
  for (const auto& one : sides_) {
    const auto side = one.lock();
    if (side == nullptr) continue;
    const bool is_its_own = side->cluster().generation() == generation;
    // Another program of this process, which has functions of its own.
    if (!is_its_own && side->cluster().is_coordinator()) continue;
    latest = side;
    if (is_its_own) break;
  }
  if (latest == nullptr) throw CancelledError("the worker's strategy has ended");
  return latest;
}

std::span<const rpc::MethodSpec> ClosureService::methods() const { return kClosureMethods; }

void ClosureService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  const ScopedTask as_this_server(Task::named(self_.job, self_.index));
  const auto arrived = std::chrono::steady_clock::now();
  if (method == kRun) ++waiting_;
  pool_.schedule([this, method, arrived, call = CallPtr(std::move(call))] {
    if (method == kRun) --waiting_;
    try {
      answer(method, call, arrived);
    } catch (...) {
      fail(*call, caught_error());
    }
  });
}

void ClosureService::fail(rpc::Call& call, const std::exception_ptr& thrown) const {
  const ErrorRecord error = record_error(thrown);
  call.fail(rpc::make_error(error.code, error.message,
                            error.task.empty() ? to_string(self_) : error.task,
                            rpc::detail_of(thrown)));
}

COHORT_CATCHES_FORCED_UNWIND
void ClosureService::answer(size_t method, const CallPtr& call,
                            std::chrono::steady_clock::time_point arrived) {
  if (method == kHello) {
    constexpr std::chrono::seconds kPatience{5};
    side_of(fence_->generation())->wait_for_program(std::chrono::steady_clock::now() + kPatience);
    return call->reply({.control = ""});
  }
  if (method == kRun || method == kSkip) {
    return take_in_order({.call = call,
                          .closure = decode_run_closure(call->request()),
                          .at = arrived,
                          .is_skipped = method == kSkip});
  }
  const MakeInput making = decode_make_input(call->request());
  if (method == kReadValue) {
    fence_->check_closure(making.session);
    return call->reply(to_message(unshared(input(making.input).value)));
  }
  if (method == kDropInput) {
    drop_input(making);
  } else {
    try {
      make_input(making);
    } catch (abi::__forced_unwind&) {
      fail(*call, thread_ended_error(quoted(making.function)));
      throw;
    }
  }
  call->reply({.control = ""});
}

void ClosureService::report(std::chrono::nanoseconds took) {
  ++closures_;
  busy_ += took;
  figures_.tick([this] {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - reported_at_).count();
    const auto since =
        static_cast<double>(closures_ - std::exchange(reported_closures_, closures_));
    reported_at_ = now;
    return NamedFigures{{"closures run", static_cast<double>(closures_)},
                        {"closures/s", since / seconds},
                        {"busy seconds", std::chrono::duration<double>(busy_).count()}};
  });
}

void ClosureService::take_in_order(Arrival arrival) {
  const SessionId session = arrival.closure.session;
  if (session > session_) {
    // Closures of the session before are refused.
    for (const auto& [place, early] : std::exchange(arrived_, {})) run_or_fail(early);
    session_ = session;
    next_ = 0;
  }
  const uint64_t place = arrival.closure.sequence;
  if (session == session_ && place > next_) {
    arrived_.emplace(place, std::move(arrival));
    return;
  }
  if (session == session_ && place == next_) ++next_;
  run_or_fail(arrival);
  run_those_in_turn();
}

void ClosureService::run_those_in_turn() {
  while (!arrived_.empty() && arrived_.begin()->first <= next_) {
    const Arrival early = std::move(arrived_.begin()->second);
    arrived_.erase(arrived_.begin());
    next_ = std::max(next_, early.closure.sequence + 1);
    run_or_fail(early);
  }
}

COHORT_CATCHES_FORCED_UNWIND void ClosureService::run_or_fail(const Arrival& arrival) {
  try {
    if (arrival.is_skipped) return arrival.call->reply({.control = ""});
    run(arrival.call, arrival.closure, arrival.at);
  } catch (abi::__forced_unwind&) {  // it has its answer; the pool goes on with another thread
    pool_.schedule([this] { run_those_in_turn(); });
    throw;
  } catch (...) {
    fail(*arrival.call, std::current_exception());
  }
}

COHORT_CATCHES_FORCED_UNWIND
void ClosureService::run(const CallPtr& call, const RunClosure& closure,
                         std::chrono::steady_clock::time_point arrived) {
  const auto began = std::chrono::steady_clock::now();
  std::shared_ptr<void> in_use;  // until the strategy is let go, too, which may end then
  const auto side = side_of(generation_of(closure.session));
  fence_->check_closure(closure.session);
  in_use = side->functions().in_use().begin(
      {.session = closure.session, .worker = self_.index, .function = closure.function});
  side->cluster().set_session(closure.session);
  const ScopedGenerator draws(generator_.get());
  ClosureContext context{.id = closure.id,
                         .forget_below = closure.forget_below,
                         .worker = self_.index,
                         .inputs = inputs_of(closure),
                         .arrived = arrived,
                         .waiting = &waiting_};
  if (closure.caches_reads) {
    const auto replicas = static_cast<size_t>(side->num_local_replicas());
    context.reads = std::make_shared<std::vector<CachedReads>>(replicas);
  }
  const ScopedClosure scoped(context);
  const ScopedCachedReads cached(closure.caches_reads ? &context.reads->front() : nullptr);
  rpc::Message result;
  std::exception_ptr error;
  try {
    result = result_of(*side, closure);
  } catch (abi::__forced_unwind&) {
    answer_after_push(*side, call, {}, thread_ended_error(quoted(closure.function)));
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  answer_after_push(*side, call, std::move(result), error);
  report(std::chrono::steady_clock::now() - began);
}

void ClosureService::answer_after_push(const WorkerSide& side, const CallPtr& call,
                                       rpc::Message result, const std::exception_ptr& error) {
  const std::shared_ptr<PushUnderWay> push = side.step().last_push();
  const auto give = [this](rpc::Call& to, rpc::Message value, const std::exception_ptr& why) {
    why == nullptr ? to.reply(std::move(value)) : fail(to, why);
  };
  if (push == nullptr) return give(*call, std::move(result), error);
  answers_.begin();
  push->on_end([this, give, kept = CallPtr(call), result = std::move(result),
                error](const std::exception_ptr& push_error) mutable {
    give(*kept, std::move(result), error == nullptr ? push_error : error);
    kept = nullptr;
    answers_.end();
  });
}

const ClosureService::Input& ClosureService::input(uint64_t id) const {
  const auto found = inputs_.find(id);
  if (found == inputs_.end()) {
    std::rethrow_exception(rpc::make_error(
        Code::kFailedPrecondition, str(self_, " has no input ", id, ": it was started again"),
        to_string(self_), {.cause = Cause::kInputLost}));
  }
  if (found->second.error != nullptr) std::rethrow_exception(found->second.error);
  return found->second;
}

std::vector<distribute::DistributedIterator*> ClosureService::inputs_of(
    const RunClosure& closure) const {
  std::vector<distribute::DistributedIterator*> inputs;
  for (const uint64_t id : closure.inputs) {
    const Input& one = input(id);
    if (one.iterator == nullptr) {
      throw InvalidArgumentError("a value of each worker was given where an iterator stands");
    }
    inputs.push_back(one.iterator.get());
  }
  return inputs;
}

Structure ClosureService::arguments_of(const RunClosure& closure) const {
  if (closure.values.empty()) return closure.arguments;
  if (closure.values[0].place == WorkerValue::kOnlyArgument) {
    return input(closure.values[0].input).value;
  }
  std::vector<Structure> arguments;
  for (size_t i = 0; i < closure.arguments.size(); ++i) arguments.push_back(closure.arguments[i]);
  for (const WorkerValue& value : closure.values) {
    if (value.place >= arguments.size()) {
      throw InvalidArgumentError(str("a closure of ", arguments.size(),
                                     " arguments has a worker's value as number ", value.place));
    }
    arguments[value.place] = input(value.input).value;
  }
  return Structure::make_tuple(std::move(arguments));
}

// libtorch would say that it has no dtype, and not of which value.
void ClosureService::check_defined(const Structure& result, const std::string& function) {
  const auto is_undefined = [](const Leaf& leaf) {
    return leaf.is_tensor() && !leaf.tensor().defined();
  };
  bool is_any = false;
  result.for_each([&](const Leaf& leaf) { is_any = is_any || is_undefined(leaf); });
  if (!is_any) return;
  result.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    if (!is_undefined(leaf)) return;
    throw InvalidArgumentError(str(quoted(function), " returned an undefined tensor as ",
                                   path.empty() ? "its result" : "output " + path,
                                   "; a function returns values, or nothing at all"));
  });
}

rpc::Message ClosureService::result_of(WorkerSide& side, const RunClosure& closure) const {
  try {
    // The coordinator names the function.
    return with_typed_errors("", [&] {
      Structure result = side.call(closure.function, arguments_of(closure));
      check_defined(result, closure.function);
      // While the answer is still being sent, the worker's next function may write to what
      // something else holds, too.
      return to_message(unshared(std::move(result)));
    });
  } catch (const CancelledError& error) {
    if (is_given_up_call(std::current_exception(), self_)) throw;
    std::rethrow_exception(rpc::make_error(Code::kCancelled, error.what(), to_string(self_),
                                           {.cause = Cause::kFunctionCancelled}));
  }
}

COHORT_CATCHES_FORCED_UNWIND
void ClosureService::make_input(const MakeInput& request) {
  std::shared_ptr<void> in_use;  // as of a closure
  const auto side = side_of(generation_of(request.session));
  fence_->check_closure(request.session);
  in_use = side->functions().in_use().begin({.session = request.session,
                                             .worker = self_.index,
                                             .does = "has the input of",
                                             .function = request.function});
  side->cluster().set_session(request.session);
  const ScopedGenerator draws(generator_.get());
  // In each session all are made that closures still take.
  if (request.session > inputs_session_) drop_inputs();
  inputs_session_ = request.session;
  inputs_.erase(request.input);
  Input& input = inputs_[request.input];
  try {
    ClosureContext context{
        .worker = self_.index, .makes_input = true, .arrived = std::chrono::steady_clock::now()};
    const ScopedClosure scoped(context);
    with_typed_errors("the function", [&] { fill(*side, request, input); });
    if (input.iterator != nullptr) input.in_use = in_use;
  } catch (abi::__forced_unwind&) {
    input.error = error_of_input(request.function, thread_ended_error("the function"));
    throw;
  } catch (...) {  // whoever uses it gets the error
    const std::exception_ptr thrown = std::current_exception();
    input.error = error_of_input(request.function, thrown);
    if (is_to_run_again(thrown, self_, side->cluster().num_ps())) throw;
    std::rethrow_exception(input.error);
  }
}

void ClosureService::fill(WorkerSide& side, const MakeInput& request, Input& input) const {
  if (request.kind == InputKind::kValue) {
    input.value = side.call(request.function, Structure::make_tuple({}));
    check_defined(input.value, request.function);
    return;
  }
  const ScopedDatasetFunction no_variables;
  input.iterator = std::make_unique<distribute::DistributedIterator>(
      side.functions().input(request.function)(side.input_context(self_.index)).iterator());
}

void ClosureService::drop_input(const MakeInput& request) {
  fence_->check_closure(request.session);
  const auto dropped = inputs_.extract(request.input);  // see drop_inputs
}

}  // namespace cohort::internal
