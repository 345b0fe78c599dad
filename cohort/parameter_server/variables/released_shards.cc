#include "cohort/parameter_server/variables/released_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {
namespace {

// The pause between looks at what has ended, and between attempts to reach a ps task. One that does
// not answer for so many is lost, with all that it has.
constexpr std::chrono::milliseconds kPause{100};
constexpr int kMostAttempts = 50;

}  // namespace

ReleasedShards::ReleasedShards(Surroundings surroundings) : around_(std::move(surroundings)) {}

// Here, not at the next look: what begins meanwhile, a call of fit for instance, would have to end,
// too.
void ReleasedShards::add(Shards shards) {
  add_batch({.shards = std::move(shards), .begun = around_.begun()});
}

void ReleasedShards::add_batch(Batch batch) {
  if (batch.attempts == kMostAttempts) return;
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  added_.push_back(std::move(batch));
  wake();
}

void ReleasedShards::wake() {
  if (is_awake_ || is_stopped_) return;
  if (around_.clock == nullptr && own_clock_ == nullptr) {
    own_clock_ = std::make_unique<rpc::SystemClock>();
  }
  rpc::Clock& clock = own_clock_ == nullptr ? *around_.clock : *own_clock_;
  clock.call_at(clock.now() + kPause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->work();
  });
  is_awake_ = true;
}

void ReleasedShards::work() {
  std::vector<Batch> added;
  {
    const std::lock_guard lock(mutex_);
    is_awake_ = false;
    if (is_stopped_) return;
    added.swap(added_);
  }
  try {
    for (Batch& batch : added) waiting_.push_back(std::move(batch));
    release_what_has_ended();
    if (waiting_.empty()) return;
    const std::lock_guard lock(mutex_);
    wake();
  } catch (const std::exception& error) {
    log_info("values of variables that have ended stay on their ps tasks: ", error.what());
  }
}

void ReleasedShards::release_what_has_ended() {
  const Progress ended = around_.ended();
  const auto first = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const Batch& one) {
    return ended.closures < one.begun.closures || ended.steps < one.begun.steps ||
           ended.calls < one.begun.calls;
  });
  std::map<int, Shards> by_attempts;
  for (auto batch = first; batch != waiting_.end(); ++batch) {
    Shards& together = by_attempts[batch->attempts];
    together.insert(together.end(), batch->shards.begin(), batch->shards.end());
  }
  waiting_.erase(first, waiting_.end());
  for (const auto& [attempts, shards] : by_attempts) {
    around_.release(shards, [weak = weak_from_this(), next = attempts + 1](Shards failed) {
      if (const auto self = weak.lock())
        self->add_batch({.shards = std::move(failed), .attempts = next});
    });
  }
}

void ReleasedShards::stop() noexcept {
  std::unique_ptr<rpc::Clock> clock;  // which ends, with what it runs, outside of the lock
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  clock = std::move(own_clock_);
}

}  // namespace cohort::internal
