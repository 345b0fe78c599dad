// Where variables lie on ps tasks, and how they get there.
#include "cohort/parameter_server/variables/served_variable.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/distribute/variables/known_values.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/store/variable_store.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;

class ServedVariableTest : public ::testing::Test, protected TwoShards {};

TEST_F(ServedVariableTest, LiesInNamedShardsOnThePsTasks) {
  const auto scope = strategy_.scope();
  const Variable v(at::arange(10).reshape({5, 2}), {.name = "v", .trainable = false});
  const Variable next(at::zeros({6, 1}), {.name = "next"});
  const ShardedVariable sharded = ShardedVariable::of(v);
  ASSERT_EQ(sharded.variables().size(), 2u);
  EXPECT_TRUE(at::equal(sharded.variables()[0].value(), at::arange(6).reshape({3, 2})));
  EXPECT_TRUE(at::equal(sharded.variables()[1].value(), at::arange(6, 10).reshape({2, 2})));
  EXPECT_EQ(sharded.variables()[1].name(), "v/part_1");
  EXPECT_EQ(sharded.variables()[0].device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(sharded.variables()[1].device(), "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(next.shards()[0].device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { v.device(); }), HasSubstr("2 shards"));
  const Variable scalar(1., {.name = "scalar"});
  EXPECT_EQ(scalar.shards().size(), 1u);
  EXPECT_EQ(scalar.device(), "/job:ps/replica:0/task:0/device:CPU:0");
}

// As of a worker whose program makes it from other data.
TEST_F(ServedVariableTest, APartOfAnotherFormIsRefusedByNameAndBothForms) {
  const Variable v = table();
  const auto& served = dynamic_cast<const internal::ServedVariable&>(v.impl());
  const std::vector<internal::VariableStore::Value> values = {{1, at::zeros({3, 2})},
                                                              {1, at::zeros({4, 2})}};
  const std::string text = thrown<InvalidArgumentError>([&] { served.copies()->take(values); });
  EXPECT_THAT(text, HasSubstr("variable 'table/part_1' is float32 [2,2] in this task"));
  EXPECT_THAT(text, HasSubstr("/job:ps/task:1 has it as float32 [4,2]"));
  EXPECT_THAT(internal::no_shard_text({5, 0}, "wrong"), HasSubstr("of variable 'wrong'"));
}

TEST_F(ServedVariableTest, EachShardIsAVariable) {
  const Variable v = table();
  const std::vector<Variable> shards = v.shards();
  shards[1].assign_add(at::full({2, 2}, 10.f));
  shards[0].assign(at::zeros({3, 2}));
  shards[1].scatter_sub({.values = at::ones({1, 2}), .indices = at_rows({1})});
  EXPECT_TRUE(at::equal(v.value().flatten(),
                        at::tensor({0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 16.f, 17.f, 17.f, 18.f})));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                shards[1].assign(at::zeros({3, 2}));
              }),
              HasSubstr("'table/part_1'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                shards[1].scatter_add({.values = at::ones({1, 2}), .indices = at_rows({2})});
              }),
              HasSubstr("'table/part_1'"));
  EXPECT_THROW(shards[0].tape_source(), FailedPreconditionError);
}

TEST_F(ServedVariableTest, IsKeptBesideAnotherUndivided) {
  const Variable first = table("first");
  const auto scope = strategy_.scope();
  const Variable alone(1., {.name = "alone"});  // ps 0
  const Variable other(1., {.name = "other"});  // ps 1
  const Variable third(1., {.name = "third"});  // ps 0
  {
    const auto beside = strategy_.extended().colocate_vars_with(other);
    const Variable v(at::zeros({5, 2}), {.name = "v"});
    EXPECT_EQ(v.device(), "/job:ps/replica:0/task:1/device:CPU:0");
  }
  {
    const auto beside = strategy_.extended().colocate_vars_with(first.shards()[1]);
    EXPECT_EQ(Variable(1., {.name = "w"}).device(), "/job:ps/replica:0/task:1/device:CPU:0");
  }
  EXPECT_EQ(Variable(1., {.name = "next"}).device(), "/job:ps/replica:0/task:1/device:CPU:0");
}

TEST_F(ServedVariableTest, OfAnotherStrategyIsNoPlace) {
  const Variable outside(1., {.name = "outside"});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { (void)strategy_.extended().colocate_vars_with(outside); }),
      HasSubstr("'outside'"));
}

TEST_F(ServedVariableTest, KnownInitialValuesAreMadeOnThePsTasks) {
  const auto scope = strategy_.scope();
  for (const auto kind : {KnownValues::Kind::kConstant, KnownValues::Kind::kUniform,
                          KnownValues::Kind::kNormal, KnownValues::Kind::kTruncatedNormal}) {
    for (const DType dtype : {float32, float64, DType(at::kHalf)}) {
      const KnownValues known{
          .kind = kind, .first = 0.5, .second = 2, .seed = 7, .stream = 1, .position = 6};
      const VariableInitializer initializer(
          [](const ShardInfo&) -> Tensor { throw InternalError("it was made here"); }, nullptr,
          [known] { return std::optional(known); });
      const Variable v({.shape = {5, 3}, .dtype = dtype, .options = {.name = "v"}}, initializer);
      EXPECT_TRUE(at::equal(v.value(), internal::make_known_values(known, {5, 3}, 0, dtype)));
    }
  }
}

TEST(LeastLoadedTest, PutsVariablesWhereThereIsLeast) {
  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(),
                                         {.variable_placement = VariablePlacement::LEAST_LOADED});
  const auto scope = strategy.scope();
  const auto ps_of = [](const std::vector<int64_t>& shape) {
    return Variable(at::zeros(shape), {.name = "v"}).device().substr(18, 6);
  };
  EXPECT_EQ(ps_of({100}), "task:0");
  EXPECT_EQ(ps_of({10}), "task:1");
  EXPECT_EQ(ps_of({10}), "task:1");
  EXPECT_EQ(ps_of({90}), "task:1");
  EXPECT_EQ(ps_of({1}), "task:0");
}

}  // namespace
}  // namespace cohort::distribute
