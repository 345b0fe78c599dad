#include "cohort/parameter_server/leadership/leadership_service.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/leadership/leadership_message.h"

namespace cohort::internal {
namespace {

enum LeadershipMethod : size_t { kTake, kLeaderHello, kAttend, kRefuseWorker };
// They know stale callers themselves.
constexpr rpc::MethodSpec kLeadershipMethods[] = {
    {.name = "take", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "hello", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "attend", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "refuse_worker", .callers = rpc::Role::kCoordinator, .fenced = false},
};

}  // namespace

// The calls that are kept open. Thread safety: any thread.
class LeadershipService::Attendance : public std::enable_shared_from_this<Attendance> {
 public:
  void keep(int64_t generation, std::unique_ptr<rpc::Call> call) {
    const std::shared_ptr<rpc::Call> kept = std::move(call);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) throw CancelledError("the server has stopped");
      calls_.push_back({generation, kept});
    }
    kept->on_cancel([weak = weak_from_this(), which = kept.get()] {
      if (const auto self = weak.lock()) self->forget(which);
    });
  }

  // Ends calls of other generations than this one.
  void end_others(int64_t generation) {
    for (const auto& call :
         take_if([&](const Kept& kept) { return kept.generation != generation; })) {
      call->fail(rpc::make_error(
          Code::kAborted,
          str("fenced, generation ", generation, ": a later coordinator has taken this task"), "",
          {.generation = generation, .cause = Cause::kFenced}));
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    for (const auto& call : take_if([](const Kept&) { return true; })) {
      call->fail(std::make_exception_ptr(CancelledError("the task's server has stopped")));
    }
  }

 private:
  struct Kept {
    int64_t generation;
    std::shared_ptr<rpc::Call> call;
  };

  void forget(const rpc::Call* which) {
    take_if([&](const Kept& kept) { return kept.call.get() == which; });
  }

  template <class Which>
  std::vector<std::shared_ptr<rpc::Call>> take_if(const Which& which) {
    std::vector<std::shared_ptr<rpc::Call>> taken;
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, [&](const Kept& kept) {
      if (which(kept)) taken.push_back(kept.call);
      return which(kept);
    });
    return taken;
  }

  std::mutex mutex_;
  std::vector<Kept> calls_;  // guarded by mutex_: one for each coordinator that is there
  bool stopped_ = false;     // guarded by mutex_
};

LeadershipService::LeadershipService(std::shared_ptr<CoordinatorFence> fence)
    : fence_(std::move(fence)), attendance_(std::make_shared<Attendance>()) {}

std::span<const rpc::MethodSpec> LeadershipService::methods() const { return kLeadershipMethods; }

void LeadershipService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  if (method == kRefuseWorker) {
    const RefuseWorker request = decode_refuse_worker(call->request());
    fence_->check_generation(request.generation);
    fence_->refuse_below(request.worker, request.below);
    return call->reply({.control = ""});
  }
  const LeaderClaim claim = decode_leader_claim(call->request());
  if (method == kTake) {
    const int64_t before =
        fence_->take(claim.generation, call->caller().incarnation, claim.session, claim.origin);
    attendance_->end_others(claim.generation);
    return call->reply(encode(LeaderClaim{.generation = before}));
  }
  fence_->check_generation(claim.generation);
  if (method == kLeaderHello) return call->reply({.control = ""});
  attendance_->keep(claim.generation, std::move(call));
}

void LeadershipService::stop() { attendance_->stop(); }

}  // namespace cohort::internal
