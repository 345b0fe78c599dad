// How a new variable goes through the creators of the program.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/variables/variable_creator.h"

namespace cohort::internal {

// One creator, and those around it. Lists of several steps and threads share their outer parts.
struct CreatorEntry {
  CreatorEntry(distribute::VariableCreator function, Creators around,
               const std::shared_ptr<StrategyCore>& strategy)
      : creator(std::move(function)), outer(std::move(around)), core(strategy) {}

  const distribute::VariableCreator creator;
  const Creators outer;
  // In whose scope the creator's was entered; or empty.
  const std::weak_ptr<StrategyCore> core;
  // True if its scope has ended in the wrong order, perhaps on another thread.
  std::atomic<bool> closed = false;
};

// Whether a creator would be called.
bool has_open_creator(const Creators& creators);

// Makes the creation go through the calling thread's creators up to, and without, `end`, and then to `make`. `core`: of the
// strategy that is to make the variable.
// Errors: InvalidArgument (a creator returned an empty Variable), what creators throw.
distribute::Variable call_creators(
    const CreatorEntry* end, StrategyCore& core, distribute::VariableCreation creation,
    FunctionRef<distribute::Variable(distribute::VariableCreation)> make);

}  // namespace cohort::internal
