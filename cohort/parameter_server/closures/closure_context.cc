#include "cohort/parameter_server/closures/closure_context.h"

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

thread_local ClosureContext* current = nullptr;

}  // namespace

uint64_t ClosureContext::next_token() {
  if (pushes >= kMostPushes) {
    throw ResourceExhaustedError(
        str("a closure runs more than ", kMostPushes, " steps; schedule several that run fewer"));
  }
  return id * kMostPushes + pushes++;
}

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
