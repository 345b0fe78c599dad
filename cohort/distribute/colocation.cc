#include "cohort/distribute/colocation.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local const VariableImpl* current_colocation = nullptr;

}  // namespace

const VariableImpl* colocated_with() { return current_colocation; }

ScopedColocation::ScopedColocation(const VariableImpl& variable)
    : previous_(std::exchange(current_colocation, &variable)) {}

ScopedColocation::~ScopedColocation() { current_colocation = previous_; }

}  // namespace cohort::internal
