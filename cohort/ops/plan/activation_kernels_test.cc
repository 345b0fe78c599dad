#include "cohort/ops/plan/activation_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace cohort::internal::plan {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Function kAll[] = {
    Function::kRelu, Function::kRelu6,   Function::kLeakyRelu, Function::kElu,  Function::kSelu,
    Function::kTanh, Function::kSigmoid, Function::kSoftplus,  Function::kGelu, Function::kSwish};

// What the kernels are compared with: one number at a time, in float64.
double value_of(const Activation& activation, double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  switch (activation.function) {
    case Function::kRelu:
      return std::max(x, 0.);
    case Function::kRelu6:
      return std::min(std::max(x, 0.), 6.);
    case Function::kLeakyRelu:
      return x > 0 ? x : activation.alpha * x;
    case Function::kElu:
      return x > 0 ? x : activation.alpha * std::expm1(x);
    case Function::kSelu:
      return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
    case Function::kTanh:
      return std::tanh(x);
    case Function::kSigmoid:
      return sigmoid;
    case Function::kSoftplus:
      return std::max(x, 0.) + std::log1p(std::exp(-std::abs(x)));
    case Function::kGelu:
      return x * std::erfc(-x / std::sqrt(2.)) / 2;
    case Function::kSwish:
      return x * sigmoid;
  }
  return 0;
}

double slope_of(const Activation& activation, double x) {
  constexpr double kStep = 1e-6;
  return (value_of(activation, x + kStep) - value_of(activation, x - kStep)) / (2 * kStep);
}

// No place of a jump among them.
std::vector<float> numbers() {
  std::vector<float> all;
  for (int i = -2001; i < 2000; i += 2) all.push_back(static_cast<float>(i) / 100.f);
  for (const float far : {-1e30f, -1e4f, -87.f, 88.f, 1e4f}) all.push_back(far);
  return all;
}

TEST(ActivationKernels, SlopesAtZeroAreTensorFlows) {
  const float zero = 0, one = 1;
  const auto slope = [&](Function function) {
    float result = -1;
    activation_gradient({.function = function, .alpha = 0.25}, &zero, &one, 1, &result);
    return result;
  };
  EXPECT_EQ(slope(Function::kRelu), 0);
  EXPECT_EQ(slope(Function::kRelu6), 0);
  EXPECT_EQ(slope(Function::kLeakyRelu), 0.25);
  EXPECT_EQ(slope(Function::kElu), 0.25);
  EXPECT_EQ(slope(Function::kSelu), 1.0507009873554805f);
}

TEST(ActivationKernels, GiveTheFunctionsAndTheirSlopes) {
  const std::vector<float> x = numbers();
  const auto count = static_cast<int64_t>(x.size());
  const std::vector<float> gradients(x.size(), 2.f);
  for (const Function function : kAll) {
    const Activation activation{function, 0.3};
    std::vector<float> values(x.size()), found(x.size());
    activate(activation, x.data(), count, values.data());
    activation_gradient(activation, reads_input(function) ? x.data() : values.data(),
                        gradients.data(), count, found.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double value = value_of(activation, x[i]);
      EXPECT_NEAR(values[i], value, 1e-6 * std::max(1., std::abs(value)))
          << plan::describe(activation) << " of " << x[i];
      if (std::abs(x[i]) > 1e3) continue;  // beyond what differences of float64 show
      EXPECT_NEAR(found[i], 2 * slope_of(activation, x[i]), 4e-6)
          << "slope of " << plan::describe(activation) << " at " << x[i];
    }
  }
}

TEST(ActivationKernels, BitsDoNotDependOnTheNumbersBesideOne) {
  const std::vector<float> x = numbers();
  for (const Function function : kAll) {
    const Activation activation{function, 0.3};
    std::vector<float> together(x.size());
    activate(activation, x.data(), static_cast<int64_t>(x.size()), together.data());
    for (size_t i = 0; i < x.size(); i += 7) {
      float alone = 0;
      activate(activation, &x[i], 1, &alone);
      EXPECT_EQ(alone, together[i]) << plan::describe(activation) << " of " << x[i];
    }
  }
}

TEST(ActivationKernels, NotANumberStays) {
  for (const Function function : kAll) {
    std::vector<float> values{kNan, 1};
    activate({function}, values.data(), 2, values.data());
    EXPECT_TRUE(std::isnan(values[0])) << plan::describe(Activation{function});
    EXPECT_FALSE(std::isnan(values[1])) << plan::describe(Activation{function});
  }
}

// At minus infinity zero times infinity, as Keras computes them.
TEST(ActivationKernels, GeluAndSwishVanishFarBelowZero) {
  for (const Function function : {Function::kGelu, Function::kSwish}) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float x[] = {-kInfinity, kInfinity, std::numeric_limits<float>::lowest(), -1e38f, 1e38f};
    const float ones[] = {1, 1, 1, 1, 1};
    float values[5], slopes[5];
    activate({function}, x, 5, values);
    activation_gradient({function}, x, ones, 5, slopes);
    const std::string name = plan::describe(Activation{function});
    EXPECT_TRUE(std::isnan(values[0])) << name;
    EXPECT_TRUE(std::isnan(slopes[0])) << name;
    EXPECT_EQ(values[1], kInfinity) << name;
    EXPECT_EQ(values[2], 0) << name;
    EXPECT_EQ(slopes[2], 0) << name;
    EXPECT_EQ(values[3], 0) << name;
    EXPECT_EQ(slopes[3], 0) << name;
    EXPECT_EQ(values[4], 1e38f) << name;
    EXPECT_EQ(slopes[4], 1) << name;
  }
}

TEST(ActivationKernels, ReluHasNoGradientAtZero) {
  const std::vector<float> values{0, 2, kNan};
  std::vector<float> gradient{1, 2, 3};
  activation_gradient(kRelu, values.data(), gradient.data(), 3, gradient.data());
  EXPECT_EQ(gradient, (std::vector<float>{0, 2, 3}));
}

}  // namespace
}  // namespace cohort::internal::plan
