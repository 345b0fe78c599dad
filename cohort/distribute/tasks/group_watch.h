// Ends a group's communication as soon as one of its tasks is lost: the calls that wait for it fail
// with an Unavailable that names it, and so do all later ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/cluster/server_membership.h"
#include "cohort/collective/communicator.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

// Thread safety: any thread.
class GroupWatch final : public MembershipListener {
 public:
  // `tasks`: those of the group, all alive in `start`; `self` is this one.
  GroupWatch(const std::vector<TaskId>& tasks, const TaskId& self, const membership::View& start);
  // The same by the incarnations of the others.
  explicit GroupWatch(std::map<TaskId, uint64_t> others, int64_t start_version)
      : start_(start_version), incarnations_(std::move(others)) {}

  // Sets the communicator that is aborted when a task is lost; at once, if one has been lost
  // already.
  void guard(std::weak_ptr<collective::Communicator> communicator);
  // Throws the error that has ended the group, if there is one.
  void check();
  // The error of the task whose loss has ended the group; null if no loss is known, or something
  // else has ended it. Waits a moment for the news, which may come later than the end of a
  // connection: up to `patience`.
  std::exception_ptr loss(std::chrono::milliseconds patience);

  void on_view(const membership::View& view) override;
  void on_end(const std::exception_ptr& error) override { end(error, End::kLoss); }

 private:
  enum class End { kNone, kLoss, kOther };
  struct State {
    End end = End::kNone;
    std::exception_ptr error = nullptr;
    std::weak_ptr<collective::Communicator> communicator = {};
  };
  void end(const std::exception_ptr& error, End how);

  const int64_t start_;                      // the version of the view in which the group began
  std::map<TaskId, uint64_t> incarnations_;  // of the others
  Synchronized<State> state_;
};

}  // namespace cohort::internal
