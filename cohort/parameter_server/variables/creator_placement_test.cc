// Which ps task a variable goes to where the program's creators name one.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/distribute/variables/variable_creator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

VariableCreator on(const std::string& device) {
  return [device](const NextVariableCreator& next, VariableCreation creation) {
    creation.device = device;
    return next(std::move(creation));
  };
}

std::string device_of_new() { return Variable(0., {.name = "v"}).device(); }

constexpr const char* kFirst = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr const char* kSecond = "/job:ps/replica:0/task:1/device:CPU:0";

// TensorFlow's testInteractionWithVariableCreatorScope.
TEST(CreatorPlacement, CreatorsAroundTheScopeNameThePsTaskAndThoseWithinAreOverridden) {
  const TestingCluster cluster{1, 2};
  const ParameterServerStrategy strategy(cluster.resolver());
  {
    const auto scope = strategy.scope();
    auto within = variable_creator_scope(on("/job:ps/task:1"));
    EXPECT_EQ(device_of_new(), kFirst);
  }
  {
    const auto scope = strategy.scope();
    EXPECT_EQ(device_of_new(), kSecond);
    EXPECT_EQ(device_of_new(), kFirst);
  }
  {
    auto around = variable_creator_scope(on("/job:ps/task:0"));
    const auto scope = strategy.scope();
    auto within = variable_creator_scope(on("/job:ps/task:1"));
    EXPECT_EQ(device_of_new(), kFirst);  // in the turn of the second
    EXPECT_EQ(device_of_new(), kFirst);
    const auto again = strategy.scope();
    EXPECT_EQ(device_of_new(), kFirst);
  }
  const auto scope = strategy.scope();
  EXPECT_EQ(device_of_new(), kFirst);
}

TEST(CreatorPlacement, HoldsForAllShardsAndNotForWhatLiesBesideOthers) {
  const TestingCluster cluster{1, 2};
  const ParameterServerStrategy strategy(
      cluster.resolver(), {.variable_partitioner = partitioners::FixedShardsPartitioner(2)});
  auto around =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.device =
            creation.options.name == "first" ? "/job:ps/task:0" : "/job:ps/task:1/cpu:0";
        return next(std::move(creation));
      });
  const auto scope = strategy.scope();
  const Variable table(at::arange(8).reshape({4, 2}), {.name = "table"});
  ASSERT_EQ(table.shards().size(), 2U);
  for (const Variable& shard : table.shards()) EXPECT_EQ(shard.device(), kSecond);
  EXPECT_TRUE(at::equal(table.value(), at::arange(8).reshape({4, 2})));
  const Variable first(0., {.name = "first"});
  EXPECT_EQ(first.device(), kFirst);
  const auto beside = strategy.extended().colocate_vars_with(first);
  EXPECT_EQ(device_of_new(), kFirst);
}

TEST(CreatorPlacement, ADeviceOfNoPsTaskIsRefused) {
  const TestingCluster cluster{1, 2};
  const ParameterServerStrategy strategy(cluster.resolver());
  for (const char* device : {"/job:ps/task:2", "/job:worker/task:0", "/job:ps", "/task:0",
                             "/job:ps/task:0/gpu:0", "/job:ps/task:0/cpu:1", "ps 1"}) {
    auto around = variable_creator_scope(on(device));
    const auto scope = strategy.scope();
    EXPECT_THAT(thrown<InvalidArgumentError>([] { device_of_new(); }), HasSubstr(device)) << device;
  }
  auto around = variable_creator_scope(on("/job:ps/task:2"));
  const auto scope = strategy.scope();
  EXPECT_THAT(thrown<InvalidArgumentError>([] { device_of_new(); }),
              AllOf(HasSubstr("2 ps tasks"), HasSubstr("'v'")));
}

TEST(CreatorPlacement, ACreatorMayGiveAnotherServedVariable) {
  const TestingCluster cluster{1, 2};
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable kept(at::zeros({2}), {.name = "kept"});
  {
    auto within = variable_creator_scope(
        [&](const NextVariableCreator&, const VariableCreation&) { return kept; });
    EXPECT_TRUE(Variable(1.) == kept);
  }
  EXPECT_EQ(device_of_new(), kSecond);  // nothing had a turn meanwhile
}

}  // namespace
}  // namespace cohort::distribute
