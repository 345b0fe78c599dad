// How a coordinator takes the ps tasks, what it says of those that obey it no more, what it waits for at its end, and
// how it lets all tasks go.
#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <ratio>
#include <thread>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/server_registry.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/failure_frame.h"
#include "cohort/core/program/task.h"
#include "cohort/parameter_server/cluster/lost_ps.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/runner/failed_program.h"
#include "cohort/parameter_server/runner/loop_result.h"
#include "cohort/parameter_server/runner/loop_table.h"
#include "cohort/parameter_server/served_task.h"

namespace cohort::internal {
namespace {

// Tenths of a second since 2026 began, of which there are generations for 27 years. No program starts again in less.
int64_t generation_of_now() {
  using std::chrono::sys_days;
  constexpr sys_days kBegin = std::chrono::year(2026) / 1 / 1;
  using Tenths = std::chrono::duration<int64_t, std::deci>;
  const auto since = std::chrono::floor<Tenths>(std::chrono::system_clock::now() - kBegin);
  return std::max(int64_t{1}, since.count());
}

}  // namespace

void ParameterServerCore::lead() {
  const std::lock_guard lock(lead_mutex_);
  if (generation_ != 0) return;
  int64_t generation = generation_of_now();
  int64_t met = take_all(generation);
  while (met >= generation) {
    generation = met + 1;
    met = std::max(met, take_all(generation));
  }
  generation_ = generation;
  if (met > 0) {
    log_info("this coordinator has generation ", generation, "; earlier ones are refused");
  }
}

int64_t ParameterServerCore::take_all(int64_t generation) const {
  std::vector<std::future<rpc::CallResult>> answers;
  for (int ps = 0; ps < store_.num_ps(); ++ps) {
    auto promise = std::make_shared<std::promise<rpc::CallResult>>();
    answers.push_back(promise->get_future());
    const LeaderClaim claim{.generation = generation, .origin = origin_};
    channel({kPs, ps})->start(
        "leadership/take", encode(claim), {.timeout = setup_.timeout},
        [promise](rpc::CallResult result) { promise->set_value(std::move(result)); });
  }
  int64_t met = 0;
  std::exception_ptr failed;
  for (auto& answer : answers) {
    const rpc::CallResult result = answer.get();  // each call has its deadline
    if (result.error == nullptr) {
      met = std::max(met, decode_leader_claim(result.reply).generation);
    } else if (const ErrorDetail detail = rpc::detail_of(result.error); detail.phase == kFenced) {
      met = std::max(met, detail.generation);
    } else {
      failed = result.error;
    }
  }
  if (failed != nullptr) std::rethrow_exception(explained(failed));
  return met;
}

// Whether a ps task that this program has taken does not answer over a new connection either.
bool ParameterServerCore::is_silent(int ps) const {
  constexpr std::chrono::milliseconds kGrace{300};  // as ClusterCoordinatorOptions::ps_grace
  if (generation_ == 0) return false;
  const auto to_it = channel({kPs, ps});
  to_it->retry_now();
  const auto promise = std::make_shared<std::promise<std::exception_ptr>>();
  to_it->start("leadership/hello", encode(LeaderClaim{.generation = generation_}),
               {.timeout = kGrace},
               [promise](const rpc::CallResult& result) { promise->set_value(result.error); });
  const std::exception_ptr error = promise->get_future().get();  // the call has its deadline
  return error != nullptr;
}

// A ps task that the coordinator cannot reach may turn out to be lost, about which more is known.
std::exception_ptr ParameterServerCore::explained(const std::exception_ptr& error) const {
  constexpr std::chrono::milliseconds kTellsWithin{300};
  if (Task::current().job() == kWorker) return error;
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.phase == kFenced && workers_are_here()) {
    return rpc::make_error(
        Code::kAborted,
        str("a later ParameterServerStrategy of this program has taken the servers, and the values "
            "of "
            "this one's variables are gone; use one strategy after the other, or give each its own "
            "servers (",
            record_error(error).message, ")"),
        "", detail);
  }
  if (detail.phase == kSuperseded) {
    return rpc::make_error(
        Code::kAborted,
        str("this ParameterServerStrategy is used for the first time after one that the program "
            "has "
            "made later, and would take the servers and the values of that one's variables from "
            "it; make it after the other one has been used, or give each its own servers (",
            record_error(error).message, ")"),
        "", detail);
  }
  if (const auto at_work = coordinator()) {
    const std::exception_ptr known = at_work->explained(error);
    if (known != error) return known;
  }
  // Nobody watches the ps tasks any more, but one that leaves by an error says so before, and answers that it ends.
  const int ps = unanswering_ps(error, num_ps());
  if (ps < 0) return error;
  const TaskId task{kPs, ps};
  const std::string told = failure_told_by(task, kTellsWithin);
  const bool is_known = !told.empty() || record_error(error).code == Code::kCancelled ||
                        detail.phase == kStartedAgain;
  if (!is_known && (record_error(error).code != Code::kUnavailable || !is_silent(ps))) return error;
  return lost_ps_error({.task = task,
                        .address = channel(task)->address(),
                        .generation = generation_,
                        .checkpoint = last_checkpoint(),
                        .told = told},
                       record_error(error).message);
}

std::string ParameterServerCore::end_functions(SessionId below,
                                               std::chrono::steady_clock::time_point deadline) {
  functions_in_use_.refuse_below(below);
  for (int worker = 0; worker < num_workers_; ++worker) {
    with_server(setup_.cluster, {kWorker, worker}, [&](ServerCore& server) {
      auto* const served = server.kept<ServedTask>();
      if (served != nullptr) served->drop_inputs_below(below);
    });
  }
  return functions_in_use_.wait_for_end(below, deadline);
}

namespace {

// Another task's end is a new generation of the cluster, by which a call that was under way is refused: as
// of an earlier one, or where the news came here first, as of a later one.
bool was_refused(const std::exception_ptr& error) {
  const Code code = record_error(error).code;
  return code == Code::kAborted || code == Code::kUnavailable;
}

}  // namespace

bool ParameterServerCore::has_begun() const {
  if (has_served_ || loops_->has_calls()) return true;
  const std::lock_guard lock(mutex_);
  return next_.closure != 0;
}

// The error of a call of fit is its result, for the others to take while this process lives. Of others whoever
// catches the exception knows what it was.
void ParameterServerCore::leave_by_exception() noexcept {
  constexpr std::chrono::seconds kPatience{2};
  try {
    if (setup_.server != nullptr) {
      published_.wait_until_taken(setup_.server->coordination(),
                                  std::chrono::steady_clock::now() + kPatience);
    }
    // Who waits in join() stays, for a coordinator that starts again; who runs fit ends by its result.
    if (setup_.server != nullptr && has_begun() && !published_.any()) {
      setup_.server->core().membership().others_stay();
    }
    FailureFrame* const frame = FailureFrame::current();
    const bool is_alone = setup_.role == ClusterRole::kCoordinator && setup_.server == nullptr;
    if (frame == nullptr || is_alone) return;
    if (!has_begun()) return frame->leave(std::make_shared<FailedProgram>(setup_));
    // The loss of a ps task ends the others' programs; a worker's does not.
    if (setup_.role == ClusterRole::kPs && own_server_ != nullptr && !is_failure_known_) {
      frame->leave(std::make_shared<FailedServer>(std::move(own_server_)));
    }
  } catch (const std::exception& error) {
    log_info("the other tasks were not told why this one leaves, because: ", error.what());
  }
}

// The other tasks' join() returns 0. After an error they stay, for a coordinator that starts again.
void ParameterServerCore::end_others() noexcept {
  constexpr std::chrono::seconds kPatience{2};
  // Patience with tasks that are alive, and may be slow: who misses the end of the last call waits
  // for another.
  constexpr std::chrono::seconds kPatienceForResult{20};
  constexpr std::chrono::milliseconds kAgain{5};
  try {
    published_.wait_until_taken(setup_.server->coordination(),
                                std::chrono::steady_clock::now() + kPatienceForResult);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto status_of = [&](const TaskId& task) {
      for (const distribute::ClusterTask& one : setup_.server->coordination().view().tasks) {
        if (one.task == task) return one.status;
      }
      return distribute::TaskStatus::kLost;
    };
    std::vector<TaskId> left;
    for (const TaskId& task : setup_.cluster.tasks()) {
      const bool serves = task.job == kWorker || task.job == kPs;
      // A lost task's host may not answer at all.
      if (serves && status_of(task) != distribute::TaskStatus::kLost) left.push_back(task);
    }
    while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
      std::vector<std::future<std::exception_ptr>> ended;
      for (const TaskId& task : left) {
        auto promise = std::make_shared<std::promise<std::exception_ptr>>();
        ended.push_back(promise->get_future());
        channel(task)->start(
            "server/stop", {.control = "the training has ended"}, {.timeout = kPatience},
            [promise](const rpc::CallResult& result) { promise->set_value(result.error); });
      }
      std::vector<TaskId> again;
      for (size_t i = 0; i < left.size(); ++i) {
        // Each call has its deadline.
        const std::exception_ptr error = ended[i].get();
        const bool is_alive = status_of(left[i]) == distribute::TaskStatus::kAlive;
        if (error != nullptr && was_refused(error) && is_alive) again.push_back(left[i]);
      }
      left = std::move(again);
      if (!left.empty()) std::this_thread::sleep_for(kAgain);
    }
  } catch (const std::exception& error) {
    log_info("the other tasks were not told of the end: ", error.what());
  }
}

// The coordinator's program may go on after the last call of fit, and read what ps tasks hold. This one's variables have
// ended.
void ParameterServerCore::wait_for_end() noexcept {
  try {
    if (!own_server_->core().is_stopping()) {
      acknowledge(own_server_->coordination(), setup_.self, kEveryCall);
    }
    own_server_->join();
  } catch (const std::exception& error) {
    log_info("this task ends, but its coordinator has not said so: ", error.what());
  }
}

}  // namespace cohort::internal
