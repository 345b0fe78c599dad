// What the update rules share: the loop over a slice, and checks of what they are given.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/core/error.h"
#include "cohort/optim/rule_fields.h"
#include "cohort/optim/update_rule.h"

namespace cohort::internal {

// Calls formula(param, slot 0, ..., gradient) for each element, all but the gradient by reference.
//
// Written so that compilers vectorise it. Formulas use only +, -, *, / and sqrt: each is correctly
// rounded, in a vector as alone, and this folder is compiled without contraction to fused
// multiply-add; so an element's result depends neither on its place in the slice nor on how wide the
// processor's vectors are.
template <int kNumSlots, class T, class Formula>
COHORT_VECTOR_CLONES void for_each_element(const optim::Slice& slice, const Formula& formula) {
  static_assert(kNumSlots <= optim::kMaxSlots);
  auto slot = [&](int i) { return static_cast<T*>(slice.slots[i]); };
  T* __restrict param = static_cast<T*>(slice.param);
  const T* __restrict gradient = static_cast<const T*>(slice.gradient);
  const int64_t size = slice.size;
  if constexpr (kNumSlots == 0) {
    for (int64_t i = 0; i < size; ++i) formula(param[i], gradient[i]);
  } else if constexpr (kNumSlots == 1) {
    T* __restrict a = slot(0);
    for (int64_t i = 0; i < size; ++i) formula(param[i], a[i], gradient[i]);
  } else if constexpr (kNumSlots == 2) {
    T* __restrict a = slot(0);
    T* __restrict b = slot(1);
    for (int64_t i = 0; i < size; ++i) formula(param[i], a[i], b[i], gradient[i]);
  } else {
    T* __restrict a = slot(0);
    T* __restrict b = slot(1);
    T* __restrict c = slot(2);
    for (int64_t i = 0; i < size; ++i) formula(param[i], a[i], b[i], c[i], gradient[i]);
  }
}

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

template <class T>
T step_size(const optim::StepScalars& scalars) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return scalars.step_size_float32;
  } else {
    return scalars.step_size_float64;
  }
}

// The scalar number `i` beside the step size.
template <class T>
T more(const optim::StepScalars& scalars, size_t i) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return scalars.more_float32[i];
  } else {
    return scalars.more_float64[i];
  }
}

// base^exponent by squaring: the same bits on every machine, which libm's pow does not promise, and
// replicas on different machines must compute the same step size.
double power(double base, int64_t exponent);

// A rule's options as data. make_rule makes the rule of them again.
template <class Options>
optim::RuleConfig config_of(const std::string& rule, const Options& options) {
  optim::RuleConfig config{rule, {}};
  rule_fields([&](const char* name,
                  auto value) { config.values.emplace_back(name, static_cast<double>(value)); },
              options);
  return config;
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
// What prepare returns for rules whose steps are as long as the learning rate says. Errors:
// InvalidArgument.
optim::StepScalars plain_step(double learning_rate, int64_t iteration);

}  // namespace cohort::internal
