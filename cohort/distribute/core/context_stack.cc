#include "cohort/distribute/core/context_stack.h"

#include <mutex>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {
namespace {

thread_local ContextFrame* last = nullptr;
thread_local bool reads_aggregate = false;

// The one context object of the process: the strategy that experimental_set_strategy has set.
struct ProgramContext {
  std::mutex mutex;
  std::shared_ptr<StrategyCore> strategy;
};
ProgramContext& program_context() {
  static ProgramContext context;
  return context;
}
std::shared_ptr<StrategyCore> program_strategy() {
  ProgramContext& context = program_context();
  std::lock_guard lock(context.mutex);
  return context.strategy;
}

using End = ContextFrame::End;

// The frame of a Scope.
struct ScopeFrame : ContextFrame {
  ScopeFrame(std::shared_ptr<StrategyCore> strategy, Replica* replica, Creators creators)
      : ContextFrame{strategy.get(), replica, last, -1, std::move(creators)},
        owner(std::move(strategy)) {}
  std::shared_ptr<StrategyCore> owner;
};

// The innermost frame; those that another thread has closed are removed first.
ContextFrame* top() {
  while (last != nullptr && last->end.load(std::memory_order_acquire) == End::kClosed) {
    delete static_cast<ScopeFrame*>(std::exchange(last, last->parent));
  }
  return last;
}

// Takes the innermost frame, that of a scope which is still open or was closed on another thread,
// off the stack.
void leave_scope() {
  ContextFrame* const frame = std::exchange(last, last->parent);
  const End before = frame->end.exchange(End::kLeft, std::memory_order_acq_rel);
  if (before == End::kClosed) delete static_cast<ScopeFrame*>(frame);
}

// Takes the frame out of the calling thread's stack, wherever in it it is; false if it is in that
// of another thread.
bool remove_frame(ContextFrame* frame) {
  for (ContextFrame** place = &last; *place != nullptr; place = &(*place)->parent) {
    if (*place != frame) continue;
    *place = frame->parent;
    return true;
  }
  return false;
}

}  // namespace

const ContextFrame* current_frame() {
  const ContextFrame* frame = top();
  while (frame != nullptr &&
         (frame->core == nullptr || frame->end.load(std::memory_order_acquire) == End::kClosed)) {
    frame = frame->parent;
  }
  return frame;
}

Creators current_creators() {
  const ContextFrame* const frame = top();
  return frame == nullptr ? nullptr : frame->creators;
}

Creators creators_around_step(const Replica& replica) {
  if (&replica == &default_replica()) return current_creators();
  const ContextFrame* frame = top();
  while (frame != nullptr && frame->replica != &replica) frame = frame->parent;
  return frame == nullptr ? nullptr : frame->creators;
}

ContextFrame* open_scope(std::shared_ptr<StrategyCore> core, Replica* replica, Creators creators) {
  return last = new ScopeFrame(std::move(core), replica, std::move(creators));
}

// Whatever is wrong, the scope is closed afterwards.
void close_scope(ContextFrame* closed, const std::string& what) {
  auto* const frame = static_cast<ScopeFrame*>(closed);
  const bool innermost = top() == frame;
  if (remove_frame(frame)) {
    delete frame;
    if (innermost) return;
    throw FailedPreconditionError(
        str("scope nesting error: ", what,
            " was closed while a scope entered later is open; that one stays open. Close scopes in "
            "the reverse order of their beginning"));
  }
  if (frame->end.exchange(End::kClosed, std::memory_order_acq_rel) == End::kLeft) {
    delete frame;
    throw FailedPreconditionError(str(
        "scope nesting error: ", what,
        " was closed after the end of the step or merge_call that it was entered in, which left "
        "it. Close a scope in the function that enters it"));
  }
  throw FailedPreconditionError(
      str("scope nesting error: ", what,
          " was closed on another thread than the one that it was entered on, which leaves it now. "
          "Close a scope on its own thread"));
}

int updated_component(const StrategyCore& core) {
  const ContextFrame* frame = current_frame();
  return frame == nullptr || frame->core != &core ? -1 : frame->update_component;
}

ContextGuard::ContextGuard(StrategyCore& core, Replica* replica, int update_component)
    : frame_{&core, replica, last, update_component, current_creators()} {
  last = &frame_;
}
ContextGuard::ContextGuard(StrategyCore& core, Replica* replica, Creators creators)
    : frame_{&core, replica, last, -1, std::move(creators)} {
  last = &frame_;
}
ContextGuard::ContextGuard(Creators creators)
    : frame_{nullptr, nullptr, last, -1, std::move(creators)} {
  last = &frame_;
}
ContextGuard::~ContextGuard() {
  while (last != &frame_) leave_scope();
  last = frame_.parent;
}

std::shared_ptr<StrategyCore> current_core() {
  if (const ContextFrame* frame = current_frame()) return frame->core->shared_from_this();
  if (auto strategy = program_strategy()) return strategy;
  return default_core();
}

bool in_default_strategy() {
  // Asked often in a step, where the frame keeps its strategy alive: no owner is made.
  if (const ContextFrame* frame = current_frame()) return frame->core->is_default();
  return current_core()->is_default();
}

Replica* current_replica() {
  if (const ContextFrame* frame = current_frame()) return frame->replica;
  return program_strategy() ? nullptr : &default_replica();
}

void set_program_strategy(std::shared_ptr<StrategyCore> strategy) {
  if (current_frame() != nullptr) {
    throw FailedPreconditionError("Must not be called inside a `tf.distribute.Strategy` scope");
  }
  ProgramContext& context = program_context();
  std::lock_guard lock(context.mutex);
  context.strategy = std::move(strategy);
}

void require_no_other_scope(const StrategyCore& core, const char* what) {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->core == &core || frame->core->is_default()) return;
  throw FailedPreconditionError(str("Mixing different tf.distribute.Strategy objects: ", what,
                                    " of a ", core.name(),
                                    " was called in the scope of another strategy, a ",
                                    frame->core->name(), "; call it outside of that scope"));
}

bool sync_on_read() { return reads_aggregate; }
bool set_sync_on_read(bool reads) { return std::exchange(reads_aggregate, reads); }

}  // namespace cohort::internal
