// Variables of the library's own: weights of layers, state of metrics and optimizers.
#pragma once

#include <memory>

#include "cohort/distribute/variables/make_variable.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::internal {

// See make_own_variable.
inline distribute::Variable create_own_variable(
    const distribute::VariableSpec& spec, const distribute::VariableInitializer& initializer,
    const std::shared_ptr<PendingValue>& pending = nullptr) {
  return distribute::Variable(make_own_variable(spec, initializer, pending));
}
inline distribute::Variable create_own_variable(const Tensor& initial_value,
                                                const distribute::VariableOptions& options) {
  return distribute::Variable(make_own_variable(initial_value, options));
}

}  // namespace cohort::internal
