#include "cohort/ops/plan/recurrent_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cohort/ops/kernels/transposed_product.h"
#include "cohort/ops/kernels/vector_functions.h"

namespace cohort::internal::plan {
namespace {

template <class Vector, class Function>
float first_of(float x, const Function& function) {
  Vector values = Vector{} + x;
  function(values);
  float result[sizeof(Vector) / sizeof(float)];
  store(values, result);
  for (const float other : result) {
    EXPECT_TRUE(other == result[0] || std::isnan(other));
  }
  return result[0];
}

template <class Vector>
class VectorFunctions : public ::testing::Test {};
using Vectors = ::testing::Types<Floats, HalfFloats>;
TYPED_TEST_SUITE(VectorFunctions, Vectors);

// Within so many units of the last place, as far as results are normal numbers.
template <class Vector, class Function, class Exact>
void expect_within(double units, double limit, const Function& function, const Exact& exact) {
  for (double x = -limit; x <= limit; x += limit / 20'011) {
    const auto at = static_cast<float>(x);
    const double expected = exact(static_cast<double>(at));
    const double unit = std::max(std::abs(expected), 1e-37) * std::numeric_limits<float>::epsilon();
    ASSERT_NEAR(first_of<Vector>(at, function), expected, units * unit) << at;
  }
}

TYPED_TEST(VectorFunctions, AreClose) {
  using Vector = TypeParam;
  const auto exponent = [](Vector& x) { exponential(x); };
  const auto logistic = [](Vector& x) { sigmoid(x); };
  const auto tangent = [](Vector& x) { hyperbolic_tangent(x); };
  expect_within<Vector>(2, 87, exponent, [](double x) { return std::exp(x); });
  expect_within<Vector>(4, 86, logistic, [](double x) { return 1 / (1 + std::exp(-x)); });
  for (const double limit : {1e-20, 1e-4, 0.1, 3., 20.}) {
    expect_within<Vector>(5, limit, tangent, [](double x) { return std::tanh(x); });
  }
}

TYPED_TEST(VectorFunctions, HaveLimits) {
  using Vector = TypeParam;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto logistic = [](Vector& x) { sigmoid(x); };
  const auto tangent = [](Vector& x) { hyperbolic_tangent(x); };
  for (const float large : {100.f, 1e30f, kInfinity}) {
    EXPECT_EQ(first_of<Vector>(large, logistic), 1);
    EXPECT_NEAR(first_of<Vector>(-large, logistic), 0, 1e-37);
    EXPECT_NEAR(first_of<Vector>(large, tangent), 1, 2e-7);
    EXPECT_NEAR(first_of<Vector>(-large, tangent), -1, 2e-7);
  }
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(first_of<Vector>(nothing, logistic)));
  EXPECT_TRUE(std::isnan(first_of<Vector>(nothing, tangent)));
}

std::vector<float> random_numbers(int64_t count) {
  static std::mt19937 random(5);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random() % 2001) / 1000 - 1;
  return numbers;
}

std::vector<int64_t> widths() {
  std::vector<int64_t> widths{kVector / 2};
  if (vector_width() == kVector) widths.push_back(kVector);
  return widths;
}

// A step of `rows` rows, with the kernels packed for vectors of `width`.
struct Step {
  Step(const RecurrentSizes& sizes, int64_t most) : sizes(sizes) {
    kernel = random_numbers(sizes.features * sizes.columns());
    recurrent = random_numbers(sizes.units * sizes.columns());
    bias = random_numbers((sizes.cell == Cell::kGru ? 2 : 1) * sizes.columns());
    input = random_numbers(most * sizes.features);
    state = random_numbers(most * sizes.units);
    memory = random_numbers(most * sizes.units);
    new_state.resize(state.size());
    new_memory.resize(state.size());
  }

  void run(int64_t width, int64_t rows) {
    std::vector<float> packed(static_cast<size_t>(packed_size(sizes, width)));
    pack(sizes, width, kernel.data(), recurrent.data(), bias.data(), packed.data());
    run_step(sizes, width, packed.data(),
             {.rows = rows,
              .input = input.data(),
              .input_distance = sizes.features,
              .state = state.data(),
              .memory = memory.data(),
              .new_state = new_state.data(),
              .new_memory = new_memory.data()});
  }

  double sum(int64_t row, int64_t gate, int64_t unit, bool of_state) const {
    const int64_t column = gate * sizes.units + unit;
    const std::vector<float>& left = of_state ? state : input;
    const std::vector<float>& right = of_state ? recurrent : kernel;
    const int64_t inner = of_state ? sizes.units : sizes.features;
    const bool has_bias = !of_state || sizes.cell == Cell::kGru;
    double sum =
        has_bias ? bias[static_cast<size_t>(column + (of_state ? sizes.columns() : 0))] : 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += static_cast<double>(left[static_cast<size_t>(row * inner + k)]) *
             right[static_cast<size_t>(k * sizes.columns() + column)];
    }
    return sum;
  }

  // The new state, by the definition.
  double expected(int64_t row, int64_t unit) const {
    const auto both = [&](int64_t gate) {
      return sum(row, gate, unit, false) + sum(row, gate, unit, true);
    };
    const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
    const auto place = static_cast<size_t>(row * sizes.units + unit);
    if (sizes.cell == Cell::kLstm) {
      const double c = logistic(both(1)) * memory[place] + logistic(both(0)) * std::tanh(both(2));
      return logistic(both(3)) * std::tanh(c);
    }
    const double update = logistic(both(0));
    const double candidate =
        std::tanh(sum(row, 2, unit, false) + logistic(both(1)) * sum(row, 2, unit, true));
    return update * state[place] + (1 - update) * candidate;
  }

  RecurrentSizes sizes;
  std::vector<float> kernel, recurrent, bias, input, state, memory, new_state, new_memory;
};

TEST(RecurrentKernels, StepIsItsDefinition) {
  for (const int64_t width : widths()) {
    for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
      for (const int64_t units : {1, 8, 13, 16, 33}) {
        Step step({cell, 3, units}, 8);
        step.run(width, 8);
        for (int64_t i = 0; i < 8 * units; ++i) {
          ASSERT_NEAR(step.new_state[static_cast<size_t>(i)], step.expected(i / units, i % units),
                      2e-6)
              << width << " " << units << " " << i;
        }
      }
    }
  }
}

TEST(RecurrentKernels, RowsDoNotDependOnHowManyThereAre) {
  for (const int64_t width : widths()) {
    for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
      Step step({cell, 5, 19}, 13);
      step.run(width, 13);
      const std::vector<float> all = step.new_state;
      for (int64_t rows = 1; rows < 13; ++rows) {
        std::fill(step.new_state.begin(), step.new_state.end(), 0.f);
        step.run(width, rows);
        EXPECT_TRUE(std::equal(all.begin(), all.begin() + rows * 19, step.new_state.begin()));
        EXPECT_EQ(step.new_state[static_cast<size_t>(rows * 19)], 0);
      }
    }
  }
}

TEST(RecurrentKernels, ProductWithATransposedMatrix) {
  for (const int64_t width : widths()) {
    for (const int64_t columns : {1, 7, 8, 17, 25, 32, 40, 64, 77, 130}) {
      for (const int64_t rows : {1, 2, 5, 6, 7}) {
        const int64_t inner = 21, distance = columns + 3;
        const std::vector<float> left = random_numbers(rows * inner);
        const std::vector<float> right = random_numbers(columns * inner);
        std::vector<float> packed(static_cast<size_t>(transposed_size(inner, columns, width)));
        pack_transposed(inner, columns, width, right.data(), packed.data());
        std::vector<float> result(static_cast<size_t>(rows * distance), 9.f);
        multiply_transposed(width, packed.data(),
                            {inner, columns, rows, left.data(), result.data(), distance});
        for (int64_t i = 0; i < rows * distance; ++i) {
          const int64_t row = i / distance, column = i % distance;
          double expected = column < columns ? 0 : 9;
          for (int64_t k = 0; column < columns && k < inner; ++k) {
            expected += static_cast<double>(left[static_cast<size_t>(row * inner + k)]) *
                        right[static_cast<size_t>(column * inner + k)];
          }
          ASSERT_NEAR(result[static_cast<size_t>(i)], expected, 1e-5) << columns << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cohort::internal::plan
