#include "cohort/parameter_server/closure_context.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local ClosureContext* current = nullptr;

}  // namespace

ClosureContext* current_closure() { return current; }

ScopedClosure::ScopedClosure(ClosureContext& context)
    : previous_(std::exchange(current, &context)) {}

ScopedClosure::~ScopedClosure() { current = previous_; }

}  // namespace cohort::internal
