// Functions of the program through which the creation of variables passes. They see what is asked
// for, may change it, and may give another variable instead.
//
//   auto scope = variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
//     creation.options.trainable = false;
//     return next(std::move(creation));
//   });
//   Variable frozen({1., 2.});                 // goes through the function; so do weights of layers made here
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort {
namespace internal {
struct CreatorEntry;
struct ContextFrame;
struct CreatorCall;
}  // namespace internal

namespace distribute {

// Passes the creation on: to the creator of the scope around, or, where there is none, to the
// strategy, which makes the variable. Each call makes one.
// Errors: FailedPrecondition (the creator that got it has returned; another thread), those of
// Variable, and what the creators around throw.
class COHORT_API NextVariableCreator {
 public:
  explicit NextVariableCreator(std::shared_ptr<const internal::CreatorCall> call)
      : call_(std::move(call)) {}

  Variable operator()(VariableCreation creation) const;

 private:
  std::shared_ptr<const internal::CreatorCall> call_;
};

// Returns what `next` returns, or another variable. Variables that it makes otherwise go through
// the creators around it.
using VariableCreator =
    std::function<Variable(const NextVariableCreator& next, VariableCreation creation)>;

// Made by variable_creator_scope. During its lifetime, variables that this thread creates go
// through the creator: those of the program, weights of layers, state of metrics and optimizers.
// The innermost creator comes first.
//
// Steps: creators that are open around `run` are called once for a variable, whatever the number of
// replicas, on the thread of any replica. Those that a step function opens are called in every
// replica that opens one, and replica 0's creation counts; where a layer is built in a step, only
// in the replica that builds for all. Code in merge_call has those around `run`.
//
// Scopes must end in the reverse order of their beginning. Of a creator that throws nothing remains
// but what it has done itself; an empty Variable is an InvalidArgumentError. Layers, metrics and
// optimizers compute with what they asked for: a variable of another shape, dtype, synchronization
// or strategy is an InvalidArgumentError there.
class [[nodiscard]] COHORT_API VariableCreatorScope {
 public:
  // Errors: InvalidArgument (an empty function).
  explicit VariableCreatorScope(VariableCreator creator);
  // Closes the scope unless close() was called; wrong nesting is logged, never thrown.
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

  // Errors: FailedPrecondition, as Scope::close. The scope is closed all the same: its creator is
  // not called again.
  void close();

 private:
  std::shared_ptr<internal::CreatorEntry> entry_;
  internal::ContextFrame* frame_ = nullptr;
  bool open_ = true;
};

// Errors: InvalidArgument (an empty function).
[[nodiscard]] inline VariableCreatorScope variable_creator_scope(VariableCreator creator) {
  return VariableCreatorScope(std::move(creator));
}

}  // namespace distribute

using distribute::NextVariableCreator;
using distribute::variable_creator_scope;
using distribute::VariableCreator;
using distribute::VariableCreatorScope;

}  // namespace cohort
