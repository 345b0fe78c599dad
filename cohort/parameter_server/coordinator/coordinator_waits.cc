// What calls that wait for a coordinator say of it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {
namespace {

int64_t whole_seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

std::string CoordinatorCore::Worker::away(size_t number, rpc::Clock::Time now) const {
  if (is_there() && inputs_under_way == 0) return "";
  const std::string name = str("worker ", number);
  if (is_there()) return name + " makes its inputs";
  if (why.empty()) return name + " has not come yet";
  return str(name, phase == Phase::kGivenUp ? " is given up, lost " : " is lost since ",
             whole_seconds(now - lost_at), " s (", why, ")");
}

std::string CoordinatorCore::all_away() const {
  constexpr size_t kMost = 500;
  const std::lock_guard lock(mutex_);
  std::string all;
  for (size_t worker = 0; worker < workers_.size() && all.size() < kMost; ++worker) {
    const std::string one = workers_[worker].away(worker, clock_.now());
    if (!one.empty()) all += "; " + one;
  }
  return all;
}

// The results hold what is given here, and may outlive the coordinator.
void CoordinatorCore::describe_wait(const ClosurePtr& closure) {
  const std::weak_ptr<const Closure> weak_closure = closure;
  closure->result->describe([weak = weak_from_this(), weak_closure] {
    ResultWait wait{.what = "fetch of a scheduled function",
                    .report_after = std::chrono::hours(1),
                    .report = [](const std::string&, ClosureQueue::Deadline) {},
                    .state = [] { return std::string("the coordinator has ended"); }};
    const auto self = weak.lock();
    const auto closure = weak_closure.lock();
    if (self == nullptr || closure == nullptr) return wait;
    wait.what = str("fetch of '", closure->function, "' (closure ", closure->number, ")");
    wait.report_after = self->options_.report_after;
    wait.report = [weak](const std::string& what, ClosureQueue::Deadline began) {
      if (const auto core = weak.lock()) core->queue_.report_wait(what, began);
    };
    wait.state = [weak, id = closure->id]() -> std::string {
      const auto core = weak.lock();
      if (core == nullptr) return "the coordinator has ended";
      return core->queue_.state_of(id) + core->all_away();
    };
    return wait;
  });
}

}  // namespace cohort::internal
