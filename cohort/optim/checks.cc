#include "cohort/optim/checks.h"

#include <cmath>

namespace cohort::internal {

void check(const HyperParameter& parameter) {
  const double value = parameter.value;
  const bool below_max = parameter.max_excluded ? value < parameter.max : value <= parameter.max;
  if (value >= 0 && below_max) return;  // a NaN fails both
  throw InvalidArgumentError(str(parameter.name, " must lie in [0, ", parameter.max,
                                 parameter.max_excluded ? ")" : "]", ", but is ", value));
}

void check_not_negative(std::string_view name, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw InvalidArgumentError(str(name, " must be a finite number not below 0, but is ", value));
}

void check_positive(std::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw InvalidArgumentError(str(name, " must be a finite number above 0, but is ", value));
}

void check_step(double learning_rate, int64_t iteration) {
  if (!std::isfinite(learning_rate)) {
    throw InvalidArgumentError(
        str("the learning rate must be a finite number, but is ", learning_rate));
  }
  if (iteration < 0) {
    throw InvalidArgumentError(str("the iteration must not be negative, but is ", iteration));
  }
}

}  // namespace cohort::internal
