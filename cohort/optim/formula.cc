#include "cohort/optim/formula.h"

namespace cohort::internal {

double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

optim::StepScalars plain_step(double learning_rate, int64_t iteration) {
  check_step(learning_rate, iteration);
  return {.step_size_float32 = static_cast<float>(learning_rate),
          .step_size_float64 = learning_rate};
}

}  // namespace cohort::internal
