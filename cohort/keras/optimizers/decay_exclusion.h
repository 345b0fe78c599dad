// The variables that keep their size where an optimizer lets weights decay.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "cohort/distribute/variables/variable.h"

namespace cohort::internal {

// Thread safety: any thread.
class DecayExclusion {
 public:
  // Excludes these variables, and those in whose name one of the texts occurs; in place of what was
  // set before.
  void set(const std::vector<distribute::Variable>& variables,
           const std::vector<std::string>& names);
  bool contains(const distribute::Variable& variable) const;

 private:
  mutable std::mutex mutex_;
  std::vector<distribute::Variable> variables_;  // guarded by mutex_
  std::vector<std::string> names_;               // guarded by mutex_
};

}  // namespace cohort::internal
