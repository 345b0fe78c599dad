#include "cohort/parameter_server/leadership/coordinator_fence.h"

#include <algorithm>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {
namespace {

// A field of the message that is stamped, above all that it has itself. The last stamp counts.
struct Stamp {
  SessionId session = 0;
};
void fields(auto& f, Stamp& stamp) { f(100, stamp.session, kAlways); }

}  // namespace

void stamp(rpc::Message& message, SessionId session) {
  message.control += encode_fields(Stamp{session});
}

SessionId session_of(const rpc::Message& message) {
  return decode_fields<Stamp>(message.control, "a call to a store").session;
}

void CoordinatorFence::on_new_generation(std::function<void(int64_t)> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

// What holds a pass is a change of variables in memory, which ends by itself.
std::unique_lock<std::mutex> CoordinatorFence::close() {
  std::unique_lock lock(mutex_);
  ++closing_;
  changed_.wait(lock, [this] { return passes_ == 0; });
  return lock;
}

void CoordinatorFence::open(std::unique_lock<std::mutex> lock) {
  --closing_;
  lock.unlock();
  changed_.notify_all();
}

void CoordinatorFence::leave() const {
  {
    const std::lock_guard lock(mutex_);
    --passes_;
  }
  changed_.notify_all();
}

int64_t CoordinatorFence::take(int64_t generation, uint64_t incarnation, SessionId session,
                               const LeaderOrigin& origin) {
  std::unique_lock lock = close();
  const int64_t before = generation_;
  try {
    if (origin.program != 0 && origin.program == origin_.program && origin.made < origin_.made) {
      throw_fenced(str("a strategy that this program has made later has taken ", self_),
                   Cause::kSuperseded);
    }
    const bool again = generation == generation_ && incarnation == incarnation_;
    if (generation <= generation_ && !again) {
      throw_fenced(str("a coordinator of generation ", generation, " cannot take ", self_));
    }
    if (!again) {
      generation_ = generation;
      incarnation_ = incarnation;
      origin_ = origin;
      lowest_.clear();
      if (handler_) handler_(generation);
    }
    session_ = session;
  } catch (...) {
    open(std::move(lock));
    throw;
  }
  open(std::move(lock));
  return before;
}

void CoordinatorFence::refuse(const std::string& what) const {
  ++refused_;
  if ((refused_ & (refused_ - 1)) == 0) {  // the 1st, 2nd, 4th, 8th...
    log_warning(self_, " has refused ", refused_, refused_ == 1 ? " stale call" : " stale calls",
                ", the last one because ", what);
  }
  throw_fenced(what);
}

void CoordinatorFence::throw_fenced(const std::string& what, Cause cause) const {
  std::rethrow_exception(rpc::make_error(
      Code::kAborted, str("fenced, generation ", generation_, ": ", what), to_string(self_),
      {.peer = to_string(self_), .generation = generation_, .cause = cause}));
}

void CoordinatorFence::require_taken() const {
  if (generation_ != 0) return;
  std::rethrow_exception(
      rpc::make_error(Code::kUnavailable,
                      str(self_, " was started again: what it had before is gone, and no ",
                          "coordinator has taken it since"),
                      to_string(self_), {.peer = to_string(self_), .cause = Cause::kStartedAgain}));
}

int64_t CoordinatorFence::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

void CoordinatorFence::check_reader(const TaskId& caller, SessionId session) const {
  const std::lock_guard lock(mutex_);
  require_taken();
  if (session == 0 || generation_of(session) == generation_) return;
  refuse(str("the reading of ", caller, " is of generation ", generation_of(session)));
}

void CoordinatorFence::check_generation(int64_t generation) const {
  const std::lock_guard lock(mutex_);
  require_taken();
  if (generation != generation_) refuse(str("the caller is of generation ", generation));
}

void CoordinatorFence::check_closure(SessionId session) const {
  const std::lock_guard lock(mutex_);
  require_taken();
  if (generation_of(session) != generation_) {
    refuse(str("the closure is of generation ", generation_of(session)));
  }
  if (session != session_) refuse(str("the closure is of an earlier session of ", self_));
}

CoordinatorFence::ChangePass CoordinatorFence::admit_change(const TaskId& caller,
                                                            SessionId session) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closing_ == 0; });
  require_taken();
  if (generation_of(session) != generation_) {
    refuse(str("the change by ", caller, " is of generation ", generation_of(session)));
  }
  const auto lowest = caller.job == kWorker ? lowest_.find(caller.index) : lowest_.end();
  if (lowest != lowest_.end() && session < lowest->second) {
    refuse(str(caller, " was lost and its closures run on others; a change of its comes late"));
  }
  ++passes_;
  return ChangePass(this);
}

void CoordinatorFence::refuse_below(int worker, SessionId session) {
  std::unique_lock lock = close();
  SessionId& lowest = lowest_[worker];
  lowest = std::max(lowest, session);
  open(std::move(lock));
}

int64_t CoordinatorFence::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace cohort::internal
