// How a task of a parameter server cluster leaves it, and how a coordinator lets all others go.
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/failure_frame.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/runner/failed_program.h"
#include "cohort/parameter_server/runner/loop_result.h"
#include "cohort/parameter_server/runner/server_runner.h"

namespace cohort::internal {
namespace {

// Another task's end is a new generation of the cluster, by which a call that was under way is
// refused: as of an earlier one, or where the news came here first, as of a later one.
bool was_refused(const std::exception_ptr& error) {
  const Code code = record_error(error).code;
  return code == Code::kAborted || code == Code::kUnavailable;
}

}  // namespace

bool ParameterServerCore::has_begun() const {
  return has_served_ || loops_.table.has_calls() || leader_.has_begun();
}

void ParameterServerCore::end() noexcept {
  // An answer that is handled at that moment may hold the last reference, on a thread without
  // exceptions.
  const bool by_exception = std::this_thread::get_id() == maker_
                                ? std::uncaught_exceptions() != exceptions_
                                : leader_.was_left_by_exception();
  if (by_exception) return leave_by_exception();
  if (cluster_.coordination() != nullptr) end_others();
  if (cluster_.running_server() != nullptr && !loops_.is_left_alone) wait_for_end();
}

// The error of a call of fit is its result, for the others to take while this process lives. Of
// others whoever catches the exception knows what it was.
void ParameterServerCore::leave_by_exception() noexcept {
  constexpr std::chrono::seconds kPatience{2};
  try {
    if (cluster_.coordination() != nullptr) {
      loops_.published.wait_until_taken(*cluster_.coordination(),
                                        std::chrono::steady_clock::now() + kPatience);
    }
    // Tasks that wait in join() stay, for a coordinator that starts again; tasks that run fit end
    // by its result.
    if (cluster_.coordination() != nullptr && has_begun() && !loops_.published.any()) {
      cluster_.setup().server->core().membership().others_stay();
    }
    FailureFrame* const frame = FailureFrame::current();
    const bool is_alone = cluster_.is_coordinator() && cluster_.setup().server == nullptr;
    if (frame == nullptr || is_alone) return;
    if (!has_begun()) {
      const auto fail = [setup = setup_](const std::exception_ptr& error) {
        ParameterServerCore::make(setup)->make_runner()->fail(error);
      };
      return frame->leave(std::make_shared<FailedProgram>(cluster_.setup().server, fail));
    }
    // The loss of a ps task ends the others' programs; a worker's does not.
    const bool is_ps = cluster_.role() == ClusterRole::kPs && cluster_.running_server() != nullptr;
    if (is_ps && !loops_.is_failure_known) {
      frame->leave(std::make_shared<FailedServer>(cluster_.take_own_server()));
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
    loops_.published.wait_until_taken(*cluster_.coordination(),
                                      std::chrono::steady_clock::now() + kPatienceForResult);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto status_of = [&](const TaskId& task) {
      for (const distribute::ClusterTask& one : cluster_.coordination()->view().tasks) {
        if (one.task == task) return one.status;
      }
      return distribute::TaskStatus::kLost;
    };
    std::vector<TaskId> left;
    for (const TaskId& task : cluster_.spec().tasks()) {
      const bool serves = task.job == kWorker || task.job == kPs;
      // A lost task's host may not answer at all.
      if (serves && status_of(task) != distribute::TaskStatus::kLost) left.push_back(task);
    }
    Backoff pauses(kAgain);
    while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
      std::vector<std::future<std::exception_ptr>> ended;
      for (const TaskId& task : left) {
        auto promise = std::make_shared<std::promise<std::exception_ptr>>();
        ended.push_back(promise->get_future());
        cluster_.channel(task)->start(
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
      if (!left.empty()) pauses.sleep(deadline);
    }
  } catch (const std::exception& error) {
    log_info("the other tasks were not told of the end: ", error.what());
  }
}

// The coordinator's program may go on after the last call of fit, and read what ps tasks hold. This
// one's variables have ended.
void ParameterServerCore::wait_for_end() noexcept {
  try {
    distribute::Server& server = *cluster_.running_server();
    if (!server.core().is_stopping()) {
      acknowledge(server.coordination(), cluster_.setup().self, kEveryCall);
    }
    server.join();
  } catch (const std::exception& error) {
    log_info("this task ends, but its coordinator has not said so: ", error.what());
  }
}

}  // namespace cohort::internal
