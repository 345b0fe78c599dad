#include "cohort/parameter_server/coordinator/leader_side.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/closures/served_task.h"
#include "cohort/parameter_server/cluster/lost_ps.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {

using std::chrono::steady_clock;

LeaderSide::LeaderSide(PsCluster& cluster, WorkerSide& workers)
    : cluster_(cluster), workers_(workers), exceptions_(std::uncaught_exceptions()) {}

std::shared_ptr<CoordinatorCore> LeaderSide::make_coordinator(
    const std::shared_ptr<LeaderSide>& leader, const Options& options) {
  PsCluster& cluster = leader->cluster_;
  CoordinatorSurroundings around;
  around.first = leader->begin_closures();
  around.generation = cluster.generation();
  around.num_workers = cluster.num_workers();
  around.num_ps = cluster.num_ps();
  around.channel = [leader](const TaskId& task) { return leader->cluster_.channel(task); };
  around.last_checkpoint = [leader] { return leader->last_checkpoint(); };
  around.failure_told_by = [leader](const TaskId& task) {
    return leader->cluster_.failure_told_by(task);
  };
  around.on_start = [leader](const std::weak_ptr<CoordinatorCore>& core) {
    if (const auto made = core.lock()) leader->set_coordinator(made);
  };
  around.end_functions = [leader](SessionId below, steady_clock::time_point deadline) {
    return end_functions(leader->workers_, below, deadline);
  };
  around.set_figure = cluster.figures();
  around.on_stop = [leader](const CoordinatorNumbers& next) { leader->end_closures(next); };
  return std::make_shared<CoordinatorCore>(std::move(around), options);
}

std::shared_ptr<CoordinatorCore> LeaderSide::share_coordinator(
    const std::shared_ptr<LeaderSide>& leader, const Options& options) {
  const std::lock_guard lock(leader->shared_mutex_);
  if (auto there = leader->shared_.lock()) return there;
  // Not a deleter: that would live, and hold this strategy, as long as shared_ does.
  struct Running {
    Running(LeaderSide& of, std::shared_ptr<CoordinatorCore> made)
        : owner(of), core(std::move(made)) {}
    ~Running() {
      owner.left_by_exception_ = std::uncaught_exceptions() != owner.exceptions_;
      core->stop();
    }
    LeaderSide& owner;  // which `core` keeps
    const std::shared_ptr<CoordinatorCore> core;
  };
  auto made = make_coordinator(leader, options);
  made->start();
  const auto running = std::make_shared<Running>(*leader, std::move(made));
  const std::shared_ptr<CoordinatorCore> shared(running, running->core.get());
  leader->shared_ = shared;
  return shared;
}

std::shared_ptr<CoordinatorCore> LeaderSide::coordinator() const {
  const std::lock_guard lock(mutex_);
  return coordinator_.lock();
}

void LeaderSide::set_coordinator(const std::shared_ptr<CoordinatorCore>& coordinator) {
  const std::scoped_lock lock(mutex_, last_mutex_);
  coordinator_ = coordinator;
  closures_ = &coordinator->queue();
}

CoordinatorNumbers LeaderSide::begin_closures() {
  cluster_.lead();
  // Numbers follow the clock: no coordinator schedules so many a second for as long as it lives.
  constexpr uint64_t kMostPerSecond = uint64_t{1} << 16;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::lock_guard lock(mutex_);
  if (std::exchange(has_coordinator_, true)) {
    throw FailedPreconditionError(
        "steps of this strategy are handed out already, by a call of fit, evaluate or predict, or "
        "by a "
        "ClusterCoordinator that is just ending; wait for its end");
  }
  next_.closure = std::max(next_.closure, static_cast<uint64_t>(now.count()) * kMostPerSecond);
  return next_;
}

void LeaderSide::end_closures(const CoordinatorNumbers& next) {
  const std::scoped_lock lock(mutex_, last_mutex_);
  next_ = next;
  has_coordinator_ = false;
  closures_ = nullptr;
  coordinator_.reset();  // a thread of its own may hold it a little longer
}

std::string LeaderSide::last_checkpoint() const {
  const std::lock_guard lock(mutex_);
  return last_checkpoint_;
}

void LeaderSide::set_last_checkpoint(const std::string& path) {
  const std::lock_guard lock(mutex_);
  last_checkpoint_ = path;
}

bool LeaderSide::has_begun() const {
  const std::lock_guard lock(mutex_);
  return next_.closure != 0;
}

uint64_t LeaderSide::next_closure() const {
  const std::lock_guard lock(last_mutex_);
  return closures_ == nullptr ? 0 : closures_->next_id();
}

uint64_t LeaderSide::oldest_unfinished_closure() const {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  const std::lock_guard lock(mutex_);
  return closures_ == nullptr ? kAll : closures_->oldest_unfinished();
}

std::exception_ptr LeaderSide::explained(const std::exception_ptr& error) const {
  if (Task::current().job() == kWorker) return error;
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.cause == Cause::kFenced && cluster_.workers_are_here()) {
    return rpc::make_error(
        Code::kAborted,
        str("a later ParameterServerStrategy of this program has taken the servers, and the values "
            "of "
            "this one's variables are gone; use one strategy after the other, or give each its own "
            "servers (",
            record_error(error).message, ")"),
        "", detail);
  }
  if (detail.cause == Cause::kSuperseded) {
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
  return explained_loss(error);
}

std::exception_ptr LeaderSide::explained_loss(const std::exception_ptr& error) const {
  constexpr std::chrono::milliseconds kTellsWithin{300};
  // Nobody watches the ps tasks any more, but one that leaves by an error says so before, and
  // answers that it ends.
  const int ps = unanswering_ps(error, cluster_.num_ps());
  if (ps < 0) return error;
  const TaskId task{kPs, ps};
  const std::string told = cluster_.failure_told_by(task, kTellsWithin);
  const bool is_known = !told.empty() || record_error(error).code == Code::kCancelled ||
                        rpc::detail_of(error).cause == Cause::kStartedAgain;
  if (!is_known && (record_error(error).code != Code::kUnavailable || !cluster_.is_silent(ps)))
    return error;
  return lost_ps_error({.task = task,
                        .address = cluster_.channel(task)->address(),
                        .generation = cluster_.generation(),
                        .checkpoint = last_checkpoint(),
                        .told = told},
                       record_error(error).message);
}

}  // namespace cohort::internal
