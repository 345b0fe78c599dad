// How the program reads what each worker has as its own value.
#include <chrono>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {

std::vector<std::shared_ptr<RemoteResult>> CoordinatorCore::read_value(
    const InputHandlePtr& value) {
  if (!value->is_made_by(weak_from_this())) {
    throw InvalidArgumentError(
        "fetch: the value of each worker is one that another ClusterCoordinator has made, or an "
        "earlier one of this strategy; fetch it with the coordinator that has made it");
  }
  std::vector<std::shared_ptr<RemoteResult>> results;
  {
    const std::lock_guard lock(mutex_);
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      results.push_back(std::make_shared<RemoteResult>());
      reads_.push_back({.worker = worker, .value = value, .result = results.back()});
      describe_wait(reads_.back());
    }
  }
  // What has ended meanwhile did not find them.
  if (const auto broken = queue_.wait_for_break(std::chrono::steady_clock::now()))
    end_reads(broken);
  for (size_t worker = 0; worker < workers_.size(); ++worker) send_reads(worker);
  return results;
}

void CoordinatorCore::send_reads(size_t worker) {
  std::vector<ValueRead> sent;
  std::exception_ptr never;
  {
    const std::lock_guard lock(mutex_);
    drop_unwanted_reads();
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
    for (ValueRead& one : reads_) {
      const bool is_asked = never == nullptr && one.asked_in == state.session;
      if (one.worker != worker || is_asked) continue;
      one.asked_in = state.session;
      sent.push_back(one);
    }
  }
  for (const ValueRead& one : sent) {
    if (never != nullptr) {
      take_read(one.result);
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
  if (answer.error != nullptr && is_fenced(answer.error)) return end(answer.error);
  if (answer.error != nullptr && is_loss(answer.error)) {
    lose(read.worker, read.asked_in, answer.error);  // it is asked again when it is back
    return;
  }
  take_read(read.result);
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

void CoordinatorCore::take_read(const std::shared_ptr<RemoteResult>& result) {
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [&](const ValueRead& one) { return one.result == result; });
}

void CoordinatorCore::drop_unwanted_reads() {
  std::erase_if(reads_, [](const ValueRead& one) { return one.result.use_count() == 1; });
}

void CoordinatorCore::end_reads(const std::exception_ptr& error) {
  std::vector<ValueRead> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(reads_);
  }
  for (const ValueRead& one : ended) one.result->fail(error);
}

}  // namespace cohort::internal
