// What the formulas of update rules share: the loop over a slice, and the numbers of a step.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/optim/checks.h"
#include "cohort/optim/rule_fields.h"
#include "cohort/optim/tensor_lists.h"
#include "cohort/optim/update_rule.h"

namespace cohort::internal {

// Calls formula(param, slot 0, ..., gradient) for each element, all but the gradient by reference.
//
// Written so that compilers vectorise it. Formulas use only +, -, *, / and sqrt: each is correctly
// rounded, in a vector as alone, and this folder is compiled without contraction to fused
// multiply-add; so an element's result depends neither on its place in the slice nor on how wide
// the processor's vectors are.
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

// The same formula for tensors: called once, with a list of tensors for each of its numbers.
template <int kNumSlots, class T, class Formula>
void for_each_element(const optim::TensorSlice& slice, const Formula& formula) {
  StoredTensors param(slice.params);
  TensorList gradient{slice.gradients};
  const auto slot = [&](size_t i) { return StoredTensors(slice.slots[i]); };
  if constexpr (kNumSlots == 0) {
    formula(param, gradient);
  } else if constexpr (kNumSlots == 1) {
    auto a = slot(0);
    formula(param, a, gradient);
  } else if constexpr (kNumSlots == 2) {
    auto a = slot(0), b = slot(1);
    formula(param, a, b, gradient);
  } else {
    auto a = slot(0), b = slot(1), c = slot(2);
    formula(param, a, b, c, gradient);
  }
}

template <class T>
constexpr DType dtype_of() {
  return sizeof(T) == sizeof(float) ? float32 : float64;
}

// What formulas write instead of the functions of <cmath> and of conditions, which lists of tensors
// have as well (tensor_lists.h).
template <std::floating_point T>
T inverse(T value) {
  return T(1) / value;
}
template <std::floating_point T>
T square_root(T value) {
  return std::sqrt(value);
}
template <std::floating_point T>
T magnitude(T value) {
  return std::abs(value);
}
template <std::floating_point T>
T power_of(T value, T exponent) {
  return std::pow(value, exponent);
}
template <std::floating_point T>
T sign_of(T value) {
  const T sign = static_cast<T>(value > 0) - static_cast<T>(value < 0);
  return value == value ? sign : value;
}
template <std::floating_point T>
T larger(T a, T b) {
  return a >= b ? a : b;
}
template <std::floating_point T>
T clipped(T value, T most) {
  const T below = value < -most ? -most : value;
  return below > most ? most : below;
}

// A rule with one formula for slices of the host and of devices: Derived::apply<T>(scalars, slice)
// calls for_each_element. The formula takes its numbers as auto&, the gradient as auto.
template <class Derived>
class FormulaRule : public optim::UpdateRule {
 public:
  void update(const optim::StepScalars& scalars, const optim::Slice& slice) const final {
    update_any(scalars, slice);
  }
  void update_tensors(const optim::StepScalars& scalars,
                      const optim::TensorSlice& slice) const final {
    update_any(scalars, slice);
  }
  bool takes_device_numbers() const final { return true; }

 private:
  template <class Slice>
  void update_any(const optim::StepScalars& scalars, const Slice& slice) const {
    dispatch_floating(name(), slice.dtype, [&](auto zero) {
      static_cast<const Derived&>(*this).template apply<decltype(zero)>(scalars, slice);
    });
  }
};

// Number `i` of a step (number_of_step), for a slice of the host and for one of a device.
template <class T>
T step_number(const optim::StepScalars& scalars, const optim::Slice&, size_t i) {
  return static_cast<T>(optim::number_of_step(scalars, dtype_of<T>(), i));
}
template <class T>
TensorNumber step_number(const optim::StepScalars& scalars, const optim::TensorSlice& slice,
                         size_t i) {
  if (slice.numbers.defined()) return {0, slice.numbers.select(0, static_cast<int64_t>(i))};
  return {static_cast<T>(optim::number_of_step(scalars, dtype_of<T>(), i))};
}

template <class T, class Elements>
auto step_size(const optim::StepScalars& scalars, const Elements& slice) {
  return step_number<T>(scalars, slice, 0);
}
// The scalar number `i` beside the step size.
template <class T, class Elements>
auto more(const optim::StepScalars& scalars, const Elements& slice, size_t i) {
  return step_number<T>(scalars, slice, i + 1);
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

// What prepare returns for rules whose steps are as long as the learning rate says. Errors:
// InvalidArgument.
optim::StepScalars plain_step(double learning_rate, int64_t iteration);

}  // namespace cohort::internal
