// How a new variable goes through the creators of the program (variable_creator.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/variable_spec.h"

namespace cohort::internal {

class VariableImpl;

using VariablePtr = std::shared_ptr<VariableImpl>;

// What errors call the object that a program holds.
inline constexpr const char* kCreatorScope = "a variable_creator_scope";

// What `next` of a running creator refers to, which the creator may have kept.
struct CreatorCall {
  using Next = FunctionRef<VariablePtr(distribute::VariableCreation)>;
  explicit CreatorCall(Next passes_on) : next(passes_on) {}

  const Next next;
  const std::thread::id thread = std::this_thread::get_id();
  std::atomic<bool> runs = true;
};

// A creator of the program. nullptr: it has returned an empty Variable.
using Creator = std::function<VariablePtr(const std::shared_ptr<const CreatorCall>& next,
                                          distribute::VariableCreation creation)>;

// One creator, and those around it. Lists of several steps and threads share their outer parts.
struct CreatorEntry {
  CreatorEntry(Creator function, Creators around, const std::shared_ptr<StrategyCore>& strategy)
      : creator(std::move(function)), outer(std::move(around)), core(strategy) {}

  const Creator creator;
  const Creators outer;
  // The strategy in whose scope the creator's was entered; or empty.
  const std::weak_ptr<StrategyCore> core;
  // True if its scope has ended in the wrong order, perhaps on another thread.
  std::atomic<bool> closed = false;
};

// Whether a creator would be called.
bool has_open_creator(const Creators& creators);

// Makes the creation go through the calling thread's creators up to, and without, `end`, and then
// to `make`. `core`: the strategy that is to make the variable.
// Errors: InvalidArgument (a creator returned an empty Variable), what creators throw.
VariablePtr call_creators(const CreatorEntry* end, StrategyCore& core,
                          distribute::VariableCreation creation,
                          FunctionRef<VariablePtr(distribute::VariableCreation)> make);

}  // namespace cohort::internal
