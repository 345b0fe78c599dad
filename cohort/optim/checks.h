// Checks of what update rules and schedules are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/text.h"

namespace cohort::internal {

// Calls function(float{}) or function(double{}).
// Errors: InvalidArgument (another dtype; names `rule`).
template <class Function>
void dispatch_floating(const std::string& rule, DType dtype, const Function& function) {
  if (dtype == float32) {
    function(float{});
  } else if (dtype == float64) {
    function(double{});
  } else {
    throw InvalidArgumentError(
        str(rule, " updates float32 and float64 variables, but got one of ", dtype_name(dtype)));
  }
}

// A hyper-parameter and the values it may take.
struct HyperParameter {
  std::string_view name;  // "AdamOptions.beta_1"
  double value = 0;
  double max = 1;  // the least is 0
  bool max_excluded = false;
};
// Errors: InvalidArgument (outside of its range, not a number).
void check(const HyperParameter& parameter);
// A hyper-parameter that may be any finite number from 0. Errors: InvalidArgument.
void check_not_negative(std::string_view name, double value);
// Any finite number above 0. Errors: InvalidArgument.
void check_positive(std::string_view name, double value);
// The arguments of UpdateRule::prepare. Errors: InvalidArgument.
void check_step(double learning_rate, int64_t iteration);

}  // namespace cohort::internal
