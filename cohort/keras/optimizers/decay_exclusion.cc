#include "cohort/keras/optimizers/decay_exclusion.h"

#include <algorithm>

namespace cohort::internal {

void DecayExclusion::set(const std::vector<distribute::Variable>& variables,
                         const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  variables_ = variables;
  names_ = names;
}

bool DecayExclusion::contains(const distribute::Variable& variable) const {
  const std::lock_guard lock(mutex_);
  if (std::find(variables_.begin(), variables_.end(), variable) != variables_.end()) return true;
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return variable.name().find(name) != std::string::npos;
  });
}

}  // namespace cohort::internal
