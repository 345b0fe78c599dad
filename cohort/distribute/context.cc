#include "cohort/distribute/context.h"

#include <mutex>

#include "cohort/core/logging.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort {
namespace internal {
namespace {

thread_local const ContextFrame* top = nullptr;
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

}  // namespace

const ContextFrame* current_frame() { return top; }

ContextGuard::ContextGuard(StrategyCore& core, distribute::ReplicaContext* replica,
                           int update_component)
    : frame_{&core, replica, top, update_component} {
  top = &frame_;
}
ContextGuard::~ContextGuard() { top = frame_.parent; }

std::shared_ptr<StrategyCore> current_core() {
  if (top != nullptr) return top->core->shared_from_this();
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
  if (top == nullptr || top->replica == nullptr || top->core->is_default()) return;
  throw FailedPreconditionError(str("Method requires being in cross-replica context: ", method,
                                    " was called in replica ",
                                    top->replica->replica_id_in_sync_group(), "; use ", use));
}

bool sync_on_read() { return reads_aggregate; }

}  // namespace internal

namespace distribute {

using internal::ContextFrame;
using internal::str;
using internal::StrategyCore;
using internal::top;

Strategy get_strategy() { return Strategy(internal::current_core()); }

// Asked often in a step, where the frame keeps its strategy alive: no owner is made.
bool has_strategy() {
  return top != nullptr ? !top->core->is_default() : !internal::current_core()->is_default();
}

bool in_cross_replica_context() { return get_replica_context() == nullptr; }

ReplicaContext* get_replica_context() {
  if (top != nullptr) return top->replica;
  return internal::program_strategy() ? nullptr : &internal::default_replica_context();
}

void experimental_set_strategy(const Strategy* strategy) {
  if (top != nullptr) {
    throw FailedPreconditionError("Must not be called inside a `tf.distribute.Strategy` scope");
  }
  internal::ProgramContext& context = internal::program_context();
  std::lock_guard lock(context.mutex);
  context.strategy = strategy != nullptr ? strategy->core() : nullptr;
}

namespace {

void check_can_enter(const StrategyCore& core) {
  if (top == nullptr || top->core->is_default()) return;
  if (top->core != &core) {
    throw FailedPreconditionError(
        str("Mixing different tf.distribute.Strategy objects: the scope of a ", core.name(),
            " was entered inside the scope of another strategy, a ", top->core->name()));
  }
  if (top->replica != nullptr) {
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
  frame_ = new ContextFrame{core_.get(), replica, top};
  top = static_cast<const ContextFrame*>(frame_);
}

void Scope::close() {
  if (!open_) return;
  if (top != frame_) {
    throw FailedPreconditionError(
        str("scope nesting error: the scope of a ", core_->name(),
            " was closed while a scope entered later is open, or on another thread"));
  }
  open_ = false;
  top = top->parent;
  delete static_cast<const ContextFrame*>(frame_);
}

Scope::~Scope() {
  if (!open_) return;
  try {
    close();
  } catch (const Error& error) {
    // The frame is left in place, with what it refers to: whoever stands above it still needs it.
    new std::shared_ptr<StrategyCore>(core_);
    internal::log(logging::Level::kError, error.what());
  }
}

VariableSyncOnReadContext::VariableSyncOnReadContext() : previous_(internal::reads_aggregate) {
  internal::reads_aggregate = true;
}
VariableSyncOnReadContext::~VariableSyncOnReadContext() { internal::reads_aggregate = previous_; }

}  // namespace distribute
}  // namespace cohort
