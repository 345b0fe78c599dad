// The context of the calling code: which strategy is current, and whether the code runs in a
// replica or across replicas.
//
//   auto scope = strategy.scope();             // cross-replica context of `strategy`
//   in_cross_replica_context() == true;
//   strategy.run([](ReplicaContext& context) { context.replica_id_in_sync_group(); });
#pragma once

#include <memory>

#include "cohort/core/export.h"

namespace cohort {
namespace internal {
class StrategyCore;
struct ContextFrame;
}  // namespace internal

namespace distribute {

class ReplicaContext;
class Strategy;

// The strategy of the innermost scope or step, of experimental_set_strategy, or the default one.
COHORT_API Strategy get_strategy();
// Whether get_strategy() returns anything but the default strategy.
COHORT_API bool has_strategy();
// True in a scope, in merge_call's function and in update's function; false in a step.
COHORT_API bool in_cross_replica_context();
// The replica that runs the calling code: in a step its own, outside of every scope the default
// strategy's; nullptr in cross-replica context.
COHORT_API ReplicaContext* get_replica_context();
// Makes `strategy` current wherever no scope is open, in place of the one set before; nullptr
// restores the default strategy.
// Errors: FailedPrecondition (inside a scope).
COHORT_API void experimental_set_strategy(const Strategy* strategy);

// Made by Strategy::scope(). During its lifetime the strategy is current on this thread, and
// variables are created as it decides. Scopes must end in the reverse order of their beginning.
class [[nodiscard]] COHORT_API Scope {
 public:
  explicit Scope(std::shared_ptr<internal::StrategyCore> core);
  // Closes the scope unless close() was called; wrong nesting is logged, never thrown.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Errors: FailedPrecondition (a scope entered later is still open, and stays so; another thread
  // than that of the beginning; the step or merge_call in which it was entered has ended, which left
  // it). The scope is closed all the same.
  void close();

 private:
  std::shared_ptr<internal::StrategyCore> core_;
  internal::ContextFrame* frame_ = nullptr;
  bool open_ = true;
};

// In a replica, during its lifetime, ON_READ variables read as the aggregate over all replicas.
// Every replica must open one, since reading is then COLLECTIVE.
class [[nodiscard]] COHORT_API VariableSyncOnReadContext {
 public:
  VariableSyncOnReadContext();
  ~VariableSyncOnReadContext();
  VariableSyncOnReadContext(const VariableSyncOnReadContext&) = delete;
  VariableSyncOnReadContext& operator=(const VariableSyncOnReadContext&) = delete;

 private:
  bool previous_;
};

}  // namespace distribute
}  // namespace cohort
