#include "cohort/parameter_server/variables/closure_context.h"

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kMostOfAKind = ClosureContext::kMostPushes / 2;

thread_local ClosureContext* current = nullptr;

}  // namespace

uint64_t ClosureContext::token_of_next_step() {
  if (steps < kMostOfAKind) return id * kMostPushes + steps++;
  throw ResourceExhaustedError(
      str("a closure runs more than ", kMostOfAKind, " steps; schedule several that run fewer"));
}

uint64_t ClosureContext::token_of_next_assignment() {
  const uint64_t number = std::atomic_ref(assignments).fetch_add(1);
  if (number < kMostOfAKind) return id * kMostPushes + kMostOfAKind + number;
  throw ResourceExhaustedError(str("a closure assigns more than ", kMostOfAKind,
                                   " times outside of steps; schedule several that assign less, or "
                                   "let a step do it"));
}

uint64_t ClosureContext::assignments_so_far() { return std::atomic_ref(assignments).load(); }

ClosureContext* current_closure() { return current; }

void refuse_in_closure(const char* call) {
  if (current == nullptr) return;
  throw FailedPreconditionError(str(
      call, " was called in a function that a coordinator has scheduled; let the function return ",
      "what the next one needs, and call ", call, " in the coordinator's program"));
}

ScopedClosure::ScopedClosure(ClosureContext& context)
    : previous_(std::exchange(current, &context)) {}

ScopedClosure::~ScopedClosure() { current = previous_; }

}  // namespace cohort::internal
