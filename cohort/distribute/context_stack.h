// The calling thread's stack of contexts; what context.h answers from.
#pragma once

#include <memory>

namespace cohort::distribute {
class ReplicaContext;
}

namespace cohort::internal {

class StrategyCore;

// Where a piece of code stands. Lives on the stack of the thread that it describes.
struct ContextFrame {
  StrategyCore* core = nullptr;
  // The replica; nullptr in a cross-replica context.
  distribute::ReplicaContext* replica = nullptr;
  const ContextFrame* parent = nullptr;
  // In StrategyExtended::update's function: the component of the variable that assign acts on.
  int update_component = -1;
};

// The innermost frame of the calling thread; nullptr outside of every scope and step.
const ContextFrame* current_frame();

// Pushes a frame for its lifetime.
class ContextGuard {
 public:
  ContextGuard(StrategyCore& core, distribute::ReplicaContext* replica, int update_component = -1);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  ContextFrame frame_;
};

// The current strategy's core: of the innermost frame, the one set for the program, or the default.
// An owner: another thread may set another one for the program at any time.
std::shared_ptr<StrategyCore> current_core();

// Where a strategy's own code runs across replicas: throws FailedPrecondition that says `use` where
// the calling code is in a replica of a strategy other than the default one.
void require_cross_replica(const char* method, const char* use);
// Errors: FailedPrecondition (in the scope of a strategy that is neither `core` nor the default one:
// names `what` was called).
void require_no_other_scope(const StrategyCore& core, const char* what);

// Whether ON_READ variables read as the aggregate on the calling thread.
bool sync_on_read();

}  // namespace cohort::internal
