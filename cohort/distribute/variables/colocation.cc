#include "cohort/distribute/variables/colocation.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local const VariableImpl* current_variable = nullptr;
thread_local Colocation current_colocation = Colocation::kShardByShard;

}  // namespace

const VariableImpl* colocated_with() { return current_variable; }
Colocation colocation() { return current_colocation; }

ScopedColocation::ScopedColocation(const VariableImpl& variable, Colocation how)
    : previous_(std::exchange(current_variable, &variable)),
      previous_colocation_(std::exchange(current_colocation, how)) {}

ScopedColocation::~ScopedColocation() {
  current_variable = previous_;
  current_colocation = previous_colocation_;
}

}  // namespace cohort::internal
