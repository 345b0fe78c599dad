#include "cohort/distribute/core/build_once.h"

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

namespace {
// Longer than any model takes to make its variables.
constexpr auto kBuildTimeout = std::chrono::minutes(10);
}  // namespace

BuildOnce::Turn::Turn(BuildOnce& once, std::string_view what) : once_(once) {
  const auto self = std::this_thread::get_id();
  std::unique_lock lock(once_.mutex_);
  const auto is_free = [&] { return once_.depth_ == 0 || once_.builder_ == self; };
  if (!once_.free_.wait_for(lock, kBuildTimeout, is_free)) {
    throw DeadlineExceededError(str(what, " is still being built by another thread after ",
                                    std::chrono::seconds(kBuildTimeout).count(), " s"));
  }
  once_.builder_ = self;
  ++once_.depth_;
}

BuildOnce::Turn::~Turn() {
  std::lock_guard lock(once_.mutex_);
  if (--once_.depth_ == 0) once_.free_.notify_all();
}

void BuildOnce::operator()(std::string_view what, FunctionRef<void()> build) {
  if (done()) return;
  const Turn turn(*this, what);
  if (done()) return;
  const std::shared_ptr<StrategyCore> core = current_core();
  if (current_replica() != nullptr && !core->is_default()) {
    ContextGuard across_replicas(*core, nullptr);
    // Not the stream of the replica that happened to come first.
    const auto generator = make_stream(next_seed());
    ScopedGenerator scoped(generator);
    build();
  } else {
    build();
  }
  done_.store(true, std::memory_order_release);
}

}  // namespace cohort::internal
