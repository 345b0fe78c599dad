#include "cohort/distribute/step/scope.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::distribute {

using internal::ContextFrame;
using internal::current_frame;
using internal::str;
using internal::StrategyCore;

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
  internal::Replica* replica = core_->is_default() ? &internal::default_replica() : nullptr;
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

VariableSyncOnReadContext::VariableSyncOnReadContext()
    : previous_(internal::set_sync_on_read(true)) {}
VariableSyncOnReadContext::~VariableSyncOnReadContext() { internal::set_sync_on_read(previous_); }

}  // namespace cohort::distribute
