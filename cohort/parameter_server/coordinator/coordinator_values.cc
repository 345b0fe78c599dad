// How the program reads what each worker has as its own value.
#include <chrono>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/worker_errors.h"

namespace cohort::internal {

std::vector<std::shared_ptr<RemoteResult>> CoordinatorCore::read_value(
    const InputHandlePtr& value) {
  if (!value->is_made_by(weak_from_this())) {
    throw InvalidArgumentError(
        "fetch: the value of each worker is one that another ClusterCoordinator has made, or an "
        "earlier one of this strategy; fetch it with the coordinator that has made it");
  }
  std::vector<std::shared_ptr<RemoteResult>> results;
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    const auto state = [weak = weak_from_this(), worker]() -> std::string {
      const auto self = weak.lock();
      if (self == nullptr) return "the coordinator has ended";
      std::string away;
      {
        const std::lock_guard lock(self->mutex_);
        away = self->workers_[worker].away(worker, self->clock_.now());
      }
      if (!away.empty()) return away;
      return str("worker ", worker, " has been asked, and runs what it has before");
    };
    results.push_back(reads_.add(worker, value, options_.report_after, state));
  }
  // What has ended meanwhile did not find them.
  if (const auto broken = queue_.wait_for_break(std::chrono::steady_clock::now()))
    reads_.end(broken);
  for (size_t worker = 0; worker < workers_.size(); ++worker) send_reads(worker);
  return results;
}

void CoordinatorCore::send_reads(size_t worker) {
  std::vector<ValueRead> sent;
  std::exception_ptr never;
  {
    const std::lock_guard lock(mutex_);
    reads_.drop_unwanted();
    const Worker& state = workers_[worker];
    if (stopped_) {
      never = std::make_exception_ptr(CancelledError("the coordinator has ended"));
    } else if (state.phase == Phase::kGivenUp) {
      const TaskId task{kWorker, static_cast<int>(worker)};
      never = rpc::make_error(Code::kUnavailable,
                              str("the value of ", task, " cannot be read: it was lost, because ",
                                  state.why, ", and is given up"),
                              "", {.peer = to_string(task), .phase = "recovery"});
    } else if (state.phase != Phase::kReady || state.inputs_under_way > 0) {
      return;  // until it has made its values
    }
    sent = never == nullptr ? reads_.to_ask(worker, state.session) : reads_.take_all(worker);
  }
  for (const ValueRead& one : sent) {
    if (never != nullptr) {
      one.result->fail(never);
      continue;
    }
    channel(worker)->start(
        "closures/read_value",
        encode(MakeInput{.function = "", .input = one.value->id(), .session = one.asked_in}),
        {.timeout = options_.closure_timeout,
         .max_reply_bytes = kMostClosureBytes,
         .same_host = true},
        if_alive([one](CoordinatorCore& self, const rpc::CallResult& answer) {
          self.read_answered(one, answer);
        }));
  }
}

void CoordinatorCore::read_answered(const ValueRead& read, const rpc::CallResult& answer) {
  if (answer.error != nullptr && is_fenced_by_later(answer.error, surroundings_.generation))
    return end(answer.error);
  if (answer.error != nullptr && is_loss(answer.error, worker_task(read.worker))) {
    lose(read.worker, read.asked_in, answer.error);  // it is asked again when it is back
    return;
  }
  reads_.take(read.result);
  try {
    if (answer.error != nullptr) std::rethrow_exception(answer.error);
    read.result->set(to_structure(answer.reply, "the value of a worker"));
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    const ErrorRecord error = record_error(thrown);
    read.result->fail(rpc::make_error(error.code,
                                      str("the value of worker ", read.worker, ": ", error.message),
                                      error.task, rpc::detail_of(thrown)));
  }
}

}  // namespace cohort::internal
