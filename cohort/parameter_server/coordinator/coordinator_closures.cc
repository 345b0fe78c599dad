// How closures go to workers, and what their answers mean.
#include <utility>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/worker_errors.h"

namespace cohort::internal {

namespace {

// A function's error, with the function's name.
std::exception_ptr named(const std::exception_ptr& error, const Closure& closure, size_t worker) {
  if (!closure.names_itself) return error;
  const ErrorRecord record = record_error(error);
  return rpc::make_error(record.code,
                         str("'", closure.function, "' on worker ", worker, ": ", record.message),
                         record.task, rpc::detail_of(error));
}

}  // namespace

// Workers that are lost, or busy by now, lose their places in the line, not the closures: those go
// to who comes next.
void CoordinatorCore::feed_idle(size_t closures) {
  std::vector<size_t> fed;
  {
    const std::lock_guard lock(mutex_);
    while (!stopped_ && !idle_.empty() && fed.size() < closures) {
      const size_t worker = idle_.front();
      idle_.pop_front();
      workers_[worker].is_idle = false;
      if (workers_[worker].can_take(options_.window)) fed.push_back(worker);
    }
  }
  for (const size_t worker : fed) {
    if (!feed(worker)) feed_idle(1);
  }
}

bool CoordinatorCore::feed(size_t worker) {
  for (bool has_looked = false;; has_looked = true) {
    ClosurePtr closure;
    Place place;
    {
      const std::lock_guard lock(mutex_);
      Worker& state = workers_[worker];
      if (stopped_ || !state.can_take(options_.window)) return has_looked;
      // The lock is held, so that no closure comes between the look and the place in the line.
      closure = queue_.take(static_cast<int>(worker));
      if (closure == nullptr) {
        if (!std::exchange(state.is_idle, true)) idle_.push_back(worker);
        return true;
      }
      ++state.in_flight;
      place = {state.session, state.next_in_session++};
    }
    send(worker, place, closure);
  }
}

void CoordinatorCore::send(size_t worker, const Place& place, const ClosurePtr& closure) {
  const auto done =
      if_alive([worker, place, closure](CoordinatorCore& self, rpc::CallResult result) {
        self.answered(worker, place, closure, std::move(result));
      });
  try {
    with_typed_errors("what a closure is sent with", [&] {
      channel(worker)->start("closures/run",
                             encode(RunClosure{.function = closure->function,
                                               .id = closure->id,
                                               .forget_below = queue_.oldest_unfinished(),
                                               .session = place.session,
                                               .inputs = closure->inputs,
                                               .arguments = closure->arguments,
                                               .values = closure->values,
                                               .sequence = place.sequence,
                                               .caches_reads = closure->caches_reads}),
                             {.timeout = options_.closure_timeout,
                              .max_reply_bytes = kMostClosureBytes,
                              .same_host = true},
                             done);
    });
  } catch (...) {  // arguments that cannot be sent
    auto refused = done;
    refused(rpc::CallResult{.error = std::current_exception(), .reply = {}});
  }
}

void CoordinatorCore::skip(size_t worker, const Place& place) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_current(worker, place.session)) return;
  }
  channel(worker)->start("closures/skip",
                         encode(RunClosure{.function = "",
                                           .session = place.session,
                                           .arguments = Structure::make_tuple({}),
                                           .sequence = place.sequence}),
                         {.timeout = options_.closure_timeout, .same_host = true},
                         [](const rpc::CallResult&) {});
}

void CoordinatorCore::answered(size_t worker, const Place& place, const ClosurePtr& closure,
                               rpc::CallResult result) {
  const SessionId session = place.session;
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
  } else if (is_fenced_by_later(result.error, surroundings_.generation)) {
    end(result.error);
    queue_.put_back(index, closure);
  } else if (const int ps = ps_watch_->about(result.error); ps >= 0) {
    ps_watch_->failed(ps, result.error, if_alive([index, closure](CoordinatorCore& self) {
                        self.queue_.put_back(index, closure);
                      }));
  } else if (is_loss(result.error, worker_task(worker))) {
    take_back(worker, session, result.error, {closure, nullptr});
  } else if (is_overdue(result.error, worker_task(worker))) {
    take_back(worker, session, result.error, {closure, named(result.error, *closure, worker)});
  } else {
    queue_.failed(index, *closure, named(result.error, *closure, worker));
  }
  if (result.error != nullptr) skip(worker, place);
  feed(worker);
}

void CoordinatorCore::take_back(size_t worker, SessionId session, const std::exception_ptr& why,
                                Returned returned) {
  if (!lose(worker, session, why)) returned.error = nullptr;  // it has waited behind the first
  {
    const std::lock_guard lock(mutex_);
    Worker& state = workers_[worker];
    if (returned.error == nullptr) ++state.retried;
    if (state.session == session && state.phase == Phase::kLost) {
      state.returned.push_back(std::move(returned));
      return;
    }
  }
  returned.give_to(queue_, static_cast<int>(worker));  // the ps tasks refuse the session already
}

void CoordinatorCore::Returned::give_to(ClosureQueue& queue, int worker) const {
  if (error != nullptr) return queue.failed(worker, *closure, error);
  queue.put_back(worker, closure);
}

}  // namespace cohort::internal
