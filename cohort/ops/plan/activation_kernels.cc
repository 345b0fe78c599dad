#include "cohort/ops/plan/activation_kernels.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/kernels/register_sums.h"
#include "cohort/ops/kernels/vector_functions.h"

namespace cohort::internal::plan {
namespace {

constexpr float kSeluScale = 1.0507009873554805f;
constexpr float kSeluLimit = 1.0507009873554805f * 1.6732632423543772f;  // far below 0, negated

// `exponential` gives no less than that of its limit, which times a number far from zero is not
// small, and times infinity is infinity: here they vanish instead, so that swish and gelu are those
// of Keras there, zero and NaN.
COHORT_INLINE void vanish_below(float limit, const Floats& given, Floats& x) {
  const Floats zero{};
  x = given < zero + limit ? zero : x;
}

// x becomes sigmoid(x).
COHORT_INLINE void swish_share(Floats& x) {
  const Floats given = x;
  sigmoid(x);
  vanish_below(-88, given, x);
}

// x becomes e^(-x^2 / 2).
COHORT_INLINE void bell(Floats& x) {
  const Floats exponent = x * x * -0.5f;
  x = exponent;
  exponential(x);
  vanish_below(-87, exponent, x);
}

// x becomes f(x).
template <Function kFunction>
COHORT_INLINE void give_value(float alpha, Floats& x) {
  const Floats zero{};
  if constexpr (kFunction == Function::kRelu) {
    x = x <= zero ? zero : x;
  } else if constexpr (kFunction == Function::kRelu6) {
    x = x <= zero ? zero : x;
    x = x >= zero + 6.f ? zero + 6.f : x;
  } else if constexpr (kFunction == Function::kLeakyRelu) {
    x = x > zero ? x : x * alpha;
  } else if constexpr (kFunction == Function::kElu) {
    Floats power = x;
    exponential(power);
    x = x > zero ? x : alpha * (power - 1.f);
  } else if constexpr (kFunction == Function::kSelu) {
    Floats power = x;
    exponential(power);
    x = x > zero ? x * kSeluScale : kSeluLimit * (power - 1.f);
  } else if constexpr (kFunction == Function::kTanh) {
    hyperbolic_tangent(x);
  } else if constexpr (kFunction == Function::kSigmoid) {
    sigmoid(x);
  } else if constexpr (kFunction == Function::kSoftplus) {
    softplus(x);
  } else if constexpr (kFunction == Function::kGelu) {
    Floats share = x;
    normal_share(share);
    x = x * share;
  } else {
    Floats share = x;
    swish_share(share);
    x = x * share;
  }
}

// value becomes f'(x).
template <Function kFunction>
COHORT_INLINE void give_slope(float alpha, Floats& value) {
  const Floats zero{};
  const Floats one = zero + 1.f;
  if constexpr (kFunction == Function::kLeakyRelu) {
    value = value > zero ? one : zero + alpha;
  } else if constexpr (kFunction == Function::kElu) {
    value = value > zero ? one : value + alpha;
  } else if constexpr (kFunction == Function::kSelu) {
    value = value >= zero ? zero + kSeluScale : value + kSeluLimit;
  } else if constexpr (kFunction == Function::kTanh) {
    value = 1.f - value * value;
  } else if constexpr (kFunction == Function::kSigmoid) {
    value = value * (1.f - value);
  } else if constexpr (kFunction == Function::kSoftplus) {
    sigmoid(value);
  } else if constexpr (kFunction == Function::kGelu) {
    Floats share = value, density = value;
    normal_share(share);
    bell(density);
    value = share + value * density * 0.3989422804014327f;  // 1 / sqrt(2 pi)
  } else if constexpr (kFunction == Function::kSwish) {
    Floats share = value;
    swish_share(share);
    value = share * (1.f + value * (1.f - share));
  }
}

// gradient becomes that of what f was given.
template <Function kFunction>
COHORT_INLINE void pass_back(float alpha, Floats& value, Floats& gradient) {
  const Floats zero{};
  if constexpr (kFunction == Function::kRelu) {
    gradient = value == zero ? zero : gradient;
  } else if constexpr (kFunction == Function::kRelu6) {
    gradient = value <= zero ? zero : gradient;
    gradient = value >= zero + 6.f ? zero : gradient;
  } else {
    give_slope<kFunction>(alpha, value);
    gradient = gradient * value;
  }
}

template <Function kFunction>
COHORT_INLINE void activate_all(float alpha, const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += kVector) {
    const int64_t some = std::min(kVector, count - i);
    Floats x;
    load_some(from + i, some, x);
    give_value<kFunction>(alpha, x);
    store_some(x, some, to + i);
  }
}

template <Function kFunction>
COHORT_INLINE void pass_all_back(float alpha, const float* values, const float* gradients,
                                 int64_t count, float* results) {
  for (int64_t i = 0; i < count; i += kVector) {
    const int64_t some = std::min(kVector, count - i);
    Floats value, gradient;
    load_some(values + i, some, value);
    load_some(gradients + i, some, gradient);
    pass_back<kFunction>(alpha, value, gradient);
    store_some(gradient, some, results + i);
  }
}

}  // namespace

bool reads_input(Function function) {
  return function == Function::kSoftplus || function == Function::kGelu ||
         function == Function::kSwish;
}

COHORT_VECTOR_CLONES void activate(const Activation& activation, const float* from, int64_t count,
                                   float* to) {
  const auto alpha = static_cast<float>(activation.alpha);
  switch (activation.function) {
    case Function::kRelu:
      return activate_all<Function::kRelu>(alpha, from, count, to);
    case Function::kRelu6:
      return activate_all<Function::kRelu6>(alpha, from, count, to);
    case Function::kLeakyRelu:
      return activate_all<Function::kLeakyRelu>(alpha, from, count, to);
    case Function::kElu:
      return activate_all<Function::kElu>(alpha, from, count, to);
    case Function::kSelu:
      return activate_all<Function::kSelu>(alpha, from, count, to);
    case Function::kTanh:
      return activate_all<Function::kTanh>(alpha, from, count, to);
    case Function::kSigmoid:
      return activate_all<Function::kSigmoid>(alpha, from, count, to);
    case Function::kSoftplus:
      return activate_all<Function::kSoftplus>(alpha, from, count, to);
    case Function::kGelu:
      return activate_all<Function::kGelu>(alpha, from, count, to);
    case Function::kSwish:
      return activate_all<Function::kSwish>(alpha, from, count, to);
  }
}

COHORT_VECTOR_CLONES void activation_gradient(const Activation& activation, const float* value,
                                              const float* gradient, int64_t count, float* result) {
  const auto alpha = static_cast<float>(activation.alpha);
  switch (activation.function) {
    case Function::kRelu:
      return pass_all_back<Function::kRelu>(alpha, value, gradient, count, result);
    case Function::kRelu6:
      return pass_all_back<Function::kRelu6>(alpha, value, gradient, count, result);
    case Function::kLeakyRelu:
      return pass_all_back<Function::kLeakyRelu>(alpha, value, gradient, count, result);
    case Function::kElu:
      return pass_all_back<Function::kElu>(alpha, value, gradient, count, result);
    case Function::kSelu:
      return pass_all_back<Function::kSelu>(alpha, value, gradient, count, result);
    case Function::kTanh:
      return pass_all_back<Function::kTanh>(alpha, value, gradient, count, result);
    case Function::kSigmoid:
      return pass_all_back<Function::kSigmoid>(alpha, value, gradient, count, result);
    case Function::kSoftplus:
      return pass_all_back<Function::kSoftplus>(alpha, value, gradient, count, result);
    case Function::kGelu:
      return pass_all_back<Function::kGelu>(alpha, value, gradient, count, result);
    case Function::kSwish:
      return pass_all_back<Function::kSwish>(alpha, value, gradient, count, result);
  }
}

}  // namespace cohort::internal::plan
