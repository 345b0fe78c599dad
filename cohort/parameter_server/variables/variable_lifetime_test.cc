// When the values of variables on ps tasks go: with the coordinator's last handle, and with nothing
// that a worker does.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class VariableLifetimeTest : public ::testing::Test {
 protected:
  Variable variable(int64_t rows = 4) const {
    const auto scope = strategy_->scope();
    return Variable(at::zeros({rows, 8}), {.name = "v", .aggregation = VariableAggregation::SUM});
  }
  int64_t bytes() const {
    const auto& store = strategy_->parameter_server_core()->variables()->store();
    return store.load(0).bytes + store.load(1).bytes;
  }
  // Whether the ps tasks come to have so many.
  bool come_to_have(int64_t wanted) const {
    const auto give_up = Clock::now() + std::chrono::seconds(20);
    while (bytes() != wanted && Clock::now() < give_up) std::this_thread::yield();
    return bytes() == wanted;
  }

  std::unique_ptr<TestingCluster> cluster_ = std::make_unique<TestingCluster>(1, 2);
  std::optional<ParameterServerStrategy> strategy_{
      std::in_place, cluster_->resolver(),
      ParameterServerStrategyOptions{.variable_partitioner =
                                         partitioners::FixedShardsPartitioner(2)}};
};

constexpr int64_t kBytes = 4 * 8 * sizeof(float);

TEST_F(VariableLifetimeTest, ValuesGoWithTheLastHandle) {
  const Variable stays = variable();
  std::optional<Variable> first = variable(100);
  const auto second = std::make_unique<Variable>(*first);
  first.reset();
  EXPECT_EQ(second->value().numel(), 800);
  EXPECT_EQ(bytes(), kBytes + 800 * static_cast<int64_t>(sizeof(float)));
  *second = Variable();
  EXPECT_TRUE(come_to_have(kBytes));
  EXPECT_EQ(stays.value().numel(), 32);
  // Of the same name, and yet another one.
  const Variable third = variable();
  third.assign(at::ones({4, 8}));
  EXPECT_EQ(stays.value().sum().item<double>(), 0);
}

// The function is the coordinator's own and has a handle until it has run.
TEST_F(VariableLifetimeTest, FunctionsThatWereScheduledBeforeHaveTheValues) {
  Gate gate;
  const ClusterCoordinator coordinator(*strategy_, {.window = 2});
  const auto hold = coordinator.schedule([&] { gate.pass(); });
  ASSERT_TRUE(gate.wait_for(1));
  std::optional<Variable> v = variable();
  const ParameterServerStrategy strategy = *strategy_;
  const auto sum = coordinator.schedule([v = *v, strategy] {
    strategy.run([&] { v.assign_add(at::ones({4, 8})); });
    return v.value().sum();
  });
  v.reset();
  gate.open();
  EXPECT_EQ(sum.fetch().tensor().item<double>(), 32);
  EXPECT_TRUE(come_to_have(0));
  coordinator.join();
}

// As in a worker of another process, whose program still has the variable when the coordinator's
// has it no more: its steps go on without it, and one that needs it is told why it cannot be.
TEST_F(VariableLifetimeTest, AWorkersStepsGoOnWithoutWhatTheCoordinatorHasLetGo) {
  const Variable gone = variable(), stays = variable();
  const auto core = strategy_->parameter_server_core();
  ClusterCoordinator coordinator(*strategy_);
  const auto both = [&] { strategy_->run([&] { stays.assign_add(gone.value() + 1); }); };
  const auto one = [&] { strategy_->run([&] { stays.assign_add(at::ones({4, 8})); }); };
  for (int i = 0; i < 2; ++i) coordinator.schedule(both);
  coordinator.join();
  const auto& served = dynamic_cast<internal::ServedVariable&>(gone.impl());
  internal::ReleasedShards::Shards shards;
  for (size_t i = 0; i < 2; ++i) {
    shards.push_back({served.layout().shards[i].place, served.layout().shard_name(i)});
  }
  core->variables()->release(shards);
  ASSERT_TRUE(come_to_have(kBytes));
  for (int i = 0; i < 3; ++i) coordinator.schedule(one);
  coordinator.join();
  EXPECT_EQ(stays.value()[0][0].item<double>(), 5);
  coordinator.schedule(both);
  EXPECT_THAT(thrown<NotFoundError>([&] { coordinator.join(); }), HasSubstr("last handle"));
}

TEST_F(VariableLifetimeTest, AProgramThatEndsWhenItsServersHaveGoneEnds) {
  std::optional<Variable> first = variable(), second = variable();
  cluster_.reset();
  const auto from = Clock::now();
  first.reset();
  std::this_thread::yield();
  second.reset();
  strategy_.reset();
  EXPECT_LT(Clock::now() - from, internal::time_limit(std::chrono::seconds(1)));
}

TEST_F(VariableLifetimeTest, WhatCannotBeMadeWholeLeavesNothing) {
  const auto scope = strategy_->scope();
  const auto make = [&] {
    return Variable({.shape = {4, 8}, .options = {.name = "v"}},
                    [](const ShardInfo& shard) -> Tensor {
                      if (shard.offset[0] > 0) throw ResourceExhaustedError("no memory");
                      return at::ones(shard.shape);
                    });
  };
  EXPECT_THROW(make(), ResourceExhaustedError);
  EXPECT_TRUE(come_to_have(0));
}

}  // namespace
}  // namespace cohort::distribute
