// The calling thread's stack of contexts: which strategy is current, and in which of its replicas
// the code runs.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace cohort::internal {

class Replica;
class StrategyCore;
struct CreatorEntry;

// The innermost creator scope, or nullptr. New variables pass through it and through the scopes
// that it links to.
using Creators = std::shared_ptr<const CreatorEntry>;

// The context of a piece of code that a thread runs. It lives on that thread's stack, except for
// the frame of a Scope.
struct ContextFrame {
  // nullptr: a scope that changes the creators alone; the context is that of the frames below.
  StrategyCore* core = nullptr;
  // The replica; nullptr in a cross-replica context.
  Replica* replica = nullptr;
  ContextFrame* parent = nullptr;
  // Inside the function of StrategyExtended::update: the component of the variable that assign acts
  // on.
  int update_component = -1;
  Creators creators = nullptr;
  // The end of a Scope's frame. It leaves the stack and its Scope is closed, in either order and
  // perhaps on two threads; the second to do so deletes it.
  enum class End { kNone, kClosed, kLeft };
  std::atomic<End> end{End::kNone};
};

// The innermost frame of the calling thread with a strategy; nullptr outside of every scope and
// step.
const ContextFrame* current_frame();

// Pushes a frame during its lifetime. Scopes that are still open above it at the end are left.
class ContextGuard {
 public:
  // Enters a context with the creators of the thread, or with others.
  ContextGuard(StrategyCore& core, Replica* replica, int update_component = -1);
  ContextGuard(StrategyCore& core, Replica* replica, Creators creators);
  // Changes the creators and leaves the context as it is.
  explicit ContextGuard(Creators creators);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  ContextFrame frame_;
};

// Pushes the frame of a scope. `core` and `replica` are nullptr if it leaves the context as it is.
ContextFrame* open_scope(std::shared_ptr<StrategyCore> core, Replica* replica, Creators creators);
// Removes the frame; to be called once. `what`: "the scope of a MirroredStrategy".
// Errors: as Scope::close.
void close_scope(ContextFrame* frame, const std::string& what);

// The creators of the calling thread.
Creators current_creators();
// The creators with which the calling thread entered this replica of a step: they were open around
// `run`. The default strategy's replica, which nobody enters, has those of the thread.
Creators creators_around_step(const Replica& replica);

// The core of the current strategy: that of the innermost frame, else the one set for the program,
// else the default. Returns an owner, since another thread may set another one at any time.
std::shared_ptr<StrategyCore> current_core();
// Whether that is the default strategy.
bool in_default_strategy();
// The replica that runs the calling code: in a step its own, outside of every scope the default
// strategy's; nullptr in cross-replica context.
Replica* current_replica();
// The default strategy's only replica; made by default_strategy.cc.
Replica& default_replica();
// Makes `strategy` current wherever no scope is open; nullptr: the default strategy.
// Errors: FailedPrecondition (inside a scope).
void set_program_strategy(std::shared_ptr<StrategyCore> strategy);

// Inside the function of StrategyExtended::update of this strategy: the component that assign acts
// on; else -1.
int updated_component(const StrategyCore& core);

// Errors: FailedPrecondition (inside the scope of a strategy that is neither `core` nor the default
// one; names the call by `what`).
void require_no_other_scope(const StrategyCore& core, const char* what);

// Whether ON_READ variables read as the aggregate on the calling thread.
bool sync_on_read();
// Sets it. Returns what it was.
bool set_sync_on_read(bool reads_aggregate);

}  // namespace cohort::internal
