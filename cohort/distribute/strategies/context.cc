#include "cohort/distribute/strategies/context.h"

#include <mutex>
#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort {
namespace internal {
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
  ScopeFrame(std::shared_ptr<StrategyCore> strategy, distribute::ReplicaContext* replica,
             Creators creators)
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

// Takes the innermost frame, that of a scope which is still open or was closed on another thread, off
// the stack.
void leave_scope() {
  ContextFrame* const frame = std::exchange(last, last->parent);
  const End before = frame->end.exchange(End::kLeft, std::memory_order_acq_rel);
  if (before == End::kClosed) delete static_cast<ScopeFrame*>(frame);
}

// Takes the frame out of the calling thread's stack, wherever in it it is; false if it is in that of
// another thread.
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

Creators creators_around_step(const distribute::ReplicaContext& replica) {
  if (&replica == &default_replica_context()) return current_creators();
  const ContextFrame* frame = top();
  while (frame != nullptr && frame->replica != &replica) frame = frame->parent;
  return frame == nullptr ? nullptr : frame->creators;
}

ContextFrame* open_scope(std::shared_ptr<StrategyCore> core, distribute::ReplicaContext* replica,
                         Creators creators) {
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

ContextGuard::ContextGuard(StrategyCore& core, distribute::ReplicaContext* replica,
                           int update_component)
    : frame_{&core, replica, last, update_component, current_creators()} {
  last = &frame_;
}
ContextGuard::ContextGuard(StrategyCore& core, distribute::ReplicaContext* replica,
                           Creators creators)
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

void require_no_other_scope(const StrategyCore& core, const char* what) {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->core == &core || frame->core->is_default()) return;
  throw FailedPreconditionError(str("Mixing different tf.distribute.Strategy objects: ", what,
                                    " of a ", core.name(),
                                    " was called in the scope of another strategy, a ",
                                    frame->core->name(), "; call it outside of that scope"));
}

void require_cross_replica(const char* method, const char* use) {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->replica == nullptr || frame->core->is_default()) return;
  throw FailedPreconditionError(str("Method requires being in cross-replica context: ", method,
                                    " was called in replica ",
                                    frame->replica->replica_id_in_sync_group(), "; use ", use));
}

bool sync_on_read() { return reads_aggregate; }

}  // namespace internal

namespace distribute {

using internal::ContextFrame;
using internal::current_frame;
using internal::str;
using internal::StrategyCore;

Strategy get_strategy() { return Strategy(internal::current_core()); }

// Asked often in a step, where the frame keeps its strategy alive: no owner is made.
bool has_strategy() {
  if (const ContextFrame* frame = current_frame()) return !frame->core->is_default();
  return !internal::current_core()->is_default();
}

bool in_cross_replica_context() { return get_replica_context() == nullptr; }

ReplicaContext* get_replica_context() {
  if (const ContextFrame* frame = current_frame()) return frame->replica;
  return internal::program_strategy() ? nullptr : &internal::default_replica_context();
}

void experimental_set_strategy(const Strategy* strategy) {
  if (current_frame() != nullptr) {
    throw FailedPreconditionError("Must not be called inside a `tf.distribute.Strategy` scope");
  }
  internal::ProgramContext& context = internal::program_context();
  std::lock_guard lock(context.mutex);
  context.strategy = strategy != nullptr ? strategy->core() : nullptr;
}

namespace {

void check_can_enter(const StrategyCore& core) {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->core->is_default()) return;
  if (frame->core != &core) {
    throw FailedPreconditionError(
        str("Mixing different tf.distribute.Strategy objects: the scope of a ", core.name(),
            " was entered inside the scope of another strategy, a ", frame->core->name()));
  }
  if (frame->replica != nullptr) {
    throw FailedPreconditionError(
        str("the scope of a ", core.name(),
            " cannot be entered in a replica; use ReplicaContext::merge_call for cross-replica "
            "code"));
  }
}

}  // namespace

Scope::Scope(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {
  check_can_enter(*core_);
  // The default strategy's scope is a replica context, as outside of every scope.
  ReplicaContext* replica = core_->is_default() ? &internal::default_replica_context() : nullptr;
  frame_ = internal::open_scope(core_, replica, internal::current_creators());
}

void Scope::close() {
  if (!open_) return;
  open_ = false;
  internal::close_scope(frame_, str("the scope of a ", core_->name()));
}

Scope::~Scope() {
  if (!open_) return;
  try {
    close();
  } catch (const Error& error) {
    internal::log(logging::Level::kError, error.what());
  }
}

VariableSyncOnReadContext::VariableSyncOnReadContext() : previous_(internal::reads_aggregate) {
  internal::reads_aggregate = true;
}
VariableSyncOnReadContext::~VariableSyncOnReadContext() { internal::reads_aggregate = previous_; }

}  // namespace distribute
}  // namespace cohort
