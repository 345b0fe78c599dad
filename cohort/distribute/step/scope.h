// Scopes make a strategy current on a thread.
//
//   auto scope = strategy.scope();             // cross-replica context of `strategy`
//   Variable weight({1., 2.});                 // stored as `strategy` decides
#pragma once

#include <memory>

#include "cohort/core/export.h"

namespace cohort {
namespace internal {
class StrategyCore;
struct ContextFrame;
}  // namespace internal

namespace distribute {

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
  // than that of the beginning; the step or merge_call in which it was entered has ended, which
  // left it). The scope is closed all the same.
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
