// Reads several variables as they are at one moment, also while steps that run elsewhere assign to
// them.
#pragma once

#include <span>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

// The interface of a variable that steps elsewhere change while this task reads it.
class ReadsTogether {
 public:
  virtual ~ReadsTogether() = default;
  // Returns the value() of each variable. What a step assigns, one after another, to small
  // variables that are kept beside one another (colocation.h) is in all of the values or in none.
  virtual std::vector<Tensor> read_together(
      std::span<const distribute::Variable> variables) const = 0;
};

// The variables are of one strategy.
inline std::vector<Tensor> read_together(std::span<const distribute::Variable> variables) {
  std::vector<Tensor> values;
  if (variables.empty()) return values;
  if (const auto* first = dynamic_cast<const ReadsTogether*>(&variables[0].impl())) {
    return first->read_together(variables);
  }
  for (const distribute::Variable& variable : variables) values.push_back(variable.value());
  return values;
}

}  // namespace cohort::internal
