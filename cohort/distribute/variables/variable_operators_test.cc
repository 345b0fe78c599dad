#include "cohort/distribute/variables/variable_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/reduce.h"
#include "cohort/ops/tensor_ops.h"
#include "cohort/ops/testing_text.h"

namespace cohort::distribute {
namespace {

TEST(VariableMaking, OfNumbersAndLists) {
  EXPECT_EQ(text(Variable(1.)), "float32 1.0");
  EXPECT_EQ(text(Variable(0)), "int32 0");
  EXPECT_EQ(text(Variable(true)), "bool true");
  EXPECT_EQ(text(Variable({0., 2., 0.})), "float32 [0.0, 2.0, 0.0]");
  EXPECT_EQ(text(Variable({1})), "int32 [1]");
  EXPECT_EQ(text(Variable({{1., 2.}, {3., 4.}}, {.name = "m"})),
            "float32 [[1.0, 2.0], [3.0, 4.0]]");
  EXPECT_FALSE(Variable(1).trainable());
  EXPECT_TRUE(Variable(1.).trainable());
  EXPECT_FALSE(Variable(1., {.trainable = false}).trainable());
}

TEST(VariableMaking, OfADtype) {
  EXPECT_EQ(text(Variable(1, {.dtype = float64})), "float64 1.0");
  EXPECT_EQ(text(Variable(constant({1., 2.}), {.dtype = int64})), "int64 [1, 2]");
  EXPECT_EQ(Variable([] { return zeros({2}); }, {.dtype = float64}).dtype(), float64);
  EXPECT_THAT(refused([] {
                Variable({.shape = {2}, .options = {.name = "w", .dtype = float64}},
                         [](const ShardInfo& shard) { return zeros(shard.shape, float64); });
              }),
              ::testing::HasSubstr("'w': its spec says dtype float32, its options float64"));
}

TEST(VariableOperators, WithNumbersTensorsAndEachOther) {
  const Variable v({1., 2.});
  const Variable w({10., 20.});
  const Tensor x = constant({3., 4.});
  EXPECT_EQ(text(v + 1), "float32 [2.0, 3.0]");
  EXPECT_EQ(text(2 * v), "float32 [2.0, 4.0]");
  EXPECT_EQ(text(-v), "float32 [-1.0, -2.0]");
  EXPECT_EQ(text(x - v), "float32 [2.0, 2.0]");
  EXPECT_EQ(text(v * x), "float32 [3.0, 8.0]");
  EXPECT_EQ(text(w / v), "float32 [10.0, 10.0]");
  EXPECT_EQ(text(1 / v), "float32 [1.0, 0.5]");
  EXPECT_EQ(text(v + 1 > 2.5), "bool [false, true]");
  EXPECT_EQ(text(v > 1), "bool [false, true]");
  EXPECT_EQ(text(v <= x), "bool [true, true]");
  EXPECT_EQ(text(v == 2), "bool [false, true]");
  EXPECT_EQ(text(x != v), "bool [true, true]");
  const bool same = v == w;
  EXPECT_FALSE(same);
}

TEST(VariableOperators, WithNumbersOfEveryType) {
  const Variable v({2., 4.});
  const std::vector<int> batch(2);
  EXPECT_EQ(text(v / batch.size()), "float32 [1.0, 2.0]");
  EXPECT_EQ(text(2U * v), "float32 [4.0, 8.0]");
  EXPECT_EQ(text(v - 1LL), "float32 [1.0, 3.0]");
  EXPECT_EQ(text(1UL + v), "float32 [3.0, 5.0]");
  EXPECT_EQ(text(v + 0.5L), "float32 [2.5, 4.5]");
  EXPECT_EQ(text(v > batch.size()), "bool [false, true]");
  EXPECT_EQ(text(v == static_cast<unsigned short>(4)), "bool [false, true]");
  EXPECT_THROW(v + std::numeric_limits<uint64_t>::max(), InvalidArgumentError);
}

TEST(VariableOperators, AVariableStandsForItsValue) {
  const Variable v({{1., 2.}});
  EXPECT_EQ(text(matmul(v, transpose(v))), "float32 [[5.0]]");
  EXPECT_EQ(text(reduce_sum(v)), "float32 3.0");
  EXPECT_EQ(text(maximum(v, 1.5)), "float32 [[1.5, 2.0]]");
  EXPECT_EQ(text(concat({v, v}, 0)), "float32 [[1.0, 2.0], [1.0, 2.0]]");
  const Variable count(0);
  count.assign_add(v.value().sum().to(int32));
  count.assign(count + 1);
  EXPECT_EQ(text(count), "int32 4");
}

TEST(VariableOperators, AreRecordedByTapes) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(3.);
  scope.close();
  const auto gradients = strategy.run([&] {
    GradientTape tape;
    const Tensor y = 2 * v * v + 1;
    return tape.gradient(y, v);
  });
  for (const Tensor& gradient : gradients.values()) EXPECT_EQ(text(gradient), "float32 12.0");
}

}  // namespace
}  // namespace cohort::distribute
