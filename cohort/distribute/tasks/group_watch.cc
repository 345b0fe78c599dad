#include "cohort/distribute/tasks/group_watch.h"

#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {

using membership::Event;
using membership::EventKind;
using membership::Member;
using membership::TaskState;

namespace {

// The error of a task that has left in good order, but not the group: by exit(), say.
std::exception_ptr left_early(const Event& event, int64_t generation) {
  const std::string task = to_string(event.task);
  return rpc::make_error(Code::kUnavailable,
                         str(task, " has ended before its strategy, which the others still use (",
                             record_error(rpc::decode_error(event.error)).message, ")"),
                         task, {.peer = task, .generation = generation, .phase = "running"});
}

// The error of the end of `task`, as the view tells it.
std::exception_ptr end_of(const TaskId& task, const membership::View& view) {
  for (const Event& event : view.events) {
    if (event.task != task) continue;
    if (event.kind == EventKind::kLost) return rpc::decode_error(event.error);
    if (event.kind == EventKind::kLeft) return left_early(event, view.generation);
  }
  const Member* member = view.find(task);
  return rpc::make_error(
      Code::kUnavailable,
      str("lost ", task, ": ",
          member != nullptr && member->state == TaskState::kAlive
              ? "another process is in its place"
              : "it is in the group no more"),
      to_string(task),
      {.peer = to_string(task), .generation = view.generation, .phase = "running"});
}

}  // namespace

GroupWatch::GroupWatch(const std::vector<TaskId>& tasks, const TaskId& self,
                       const membership::View& start)
    : start_(start.version) {
  for (const TaskId& task : tasks) {
    const Member* member = start.find(task);
    if (task != self && member != nullptr) incarnations_[task] = member->incarnation;
  }
}

void GroupWatch::guard(std::weak_ptr<collective::Communicator> communicator) {
  std::exception_ptr error;
  std::shared_ptr<collective::Communicator> live = communicator.lock();
  {
    const auto state = state_.lock();
    state->communicator = std::move(communicator);
    error = state->error;
  }
  if (error != nullptr && live != nullptr) live->abort(error);
}

void GroupWatch::check() {
  const auto state = state_.lock();
  if (state->end != End::kNone) std::rethrow_exception(state->error);
}

std::exception_ptr GroupWatch::loss(std::chrono::milliseconds patience) {
  auto state = state_.lock();
  state.wait_until(std::chrono::steady_clock::now() + bounded_wait(patience),
                   [&] { return state->end != End::kNone; });
  return state->end == End::kLoss ? state->error : nullptr;
}

void GroupWatch::on_view(const membership::View& view) {
  for (const auto& [task, incarnation] : incarnations_) {
    const Member* member = view.find(task);
    if (member == nullptr || member->state != TaskState::kAlive ||
        member->incarnation != incarnation) {
      const bool left = member != nullptr && member->state == TaskState::kLeft;
      return end(end_of(task, view), left ? End::kOther : End::kLoss);
    }
  }
  for (const Event& event : view.events) {
    if (event.kind == EventKind::kReported && event.version > start_ &&
        incarnations_.contains(event.task)) {
      return end(rpc::decode_error(event.error), End::kOther);
    }
  }
}

void GroupWatch::end(const std::exception_ptr& error, End how) {
  std::shared_ptr<collective::Communicator> live;
  {
    const auto state = state_.change();
    if (state->end != End::kNone) return;
    state->end = how;
    state->error = error;
    live = state->communicator.lock();
  }
  if (live != nullptr) live->abort(error);
}

}  // namespace cohort::internal
