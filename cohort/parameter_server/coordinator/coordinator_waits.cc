// What calls that wait for a coordinator say of it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {
namespace {

int64_t whole_seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

std::string CoordinatorCore::away(size_t worker) const {
  const Worker& state = workers_[worker];
  const bool is_there = state.phase == Phase::kReady || state.phase == Phase::kMakesInputs;
  if (is_there && state.inputs_under_way == 0) return "";
  const std::string name = str("worker ", worker);
  if (is_there) return name + " makes its inputs";
  if (state.why.empty()) return name + " has not come yet";
  return str(name, state.phase == Phase::kGivenUp ? " is given up, lost " : " is lost since ",
             whole_seconds(clock_.now() - state.lost_at), " s (", state.why, ")");
}

std::string CoordinatorCore::all_away() const {
  constexpr size_t kMost = 500;
  const std::lock_guard lock(mutex_);
  std::string all;
  for (size_t worker = 0; worker < workers_.size() && all.size() < kMost; ++worker) {
    const std::string one = away(worker);
    if (!one.empty()) all += "; " + one;
  }
  return all;
}

// The results hold what is given here, and may outlive the coordinator.
void CoordinatorCore::describe_wait(const Closure& closure) {
  closure.result->describe(
      {.what = str("fetch of '", closure.function, "' (closure ", closure.number, ")"),
       .report_after = options_.report_after,
       .report =
           [weak = weak_from_this()](const std::string& what, ClosureQueue::Deadline began) {
             if (const auto self = weak.lock()) self->queue_.report_wait(what, began);
           },
       .state = [weak = weak_from_this(), id = closure.id]() -> std::string {
         const auto self = weak.lock();
         if (self == nullptr) return "the coordinator has ended";
         return self->queue_.state_of(id) + self->all_away();
       }});
}

void CoordinatorCore::describe_wait(const ValueRead& read) {
  const auto state = [weak = weak_from_this(), worker = read.worker]() -> std::string {
    const auto self = weak.lock();
    if (self == nullptr) return "the coordinator has ended";
    std::string away;
    {
      const std::lock_guard lock(self->mutex_);
      away = self->away(worker);
    }
    if (!away.empty()) return away;
    return str("worker ", worker, " has been asked, and runs what it has before");
  };
  read.result->describe({.what = str("fetch of worker ", read.worker, "'s value"),
                         .report_after = options_.report_after,
                         .report =
                             [state](const std::string& what, ClosureQueue::Deadline began) {
                               const auto waited = ClosureQueue::Clock::now() - began;
                               log_warning(what, " has waited for ", whole_seconds(waited),
                                           " s: ", state());
                             },
                         .state = state});
}

}  // namespace cohort::internal
