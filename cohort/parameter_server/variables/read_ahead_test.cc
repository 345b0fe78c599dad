// What a step's push brings for the next one.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;

class ReadAheadTest : public ::testing::Test, protected TwoShards {
 protected:
  Variable variable(const Tensor& value) const {
    const auto scope = strategy_.scope();
    return Variable(value, {.name = "v", .aggregation = VariableAggregation::SUM});
  }
  double number(const RemoteValue& result) const { return result.fetch().tensor().item<double>(); }
};

TEST_F(ReadAheadTest, AStepSeesWhatTheOneBeforeHasPushed) {
  const Variable v = variable(at::zeros({}, float64)), table = variable(at::zeros({8, 2}));
  const auto step = strategy_.function("step", [&] {
    Tensor seen;
    strategy_.run([&] {
      const Tensor rows = table.sparse_read(at::tensor({1, 6}, int64));
      seen = v.value().clone();
      if (rows.sum().item<double>() != 4 * seen.item<double>()) throw InternalError("other rows");
      v.assign_add(1.);
      table.scatter_add({.values = at::ones({2, 2}), .indices = at::tensor({6, 1}, int64)});
    });
    return seen;
  });
  const ClusterCoordinator coordinator(strategy_, {.window = 4});
  std::vector<RemoteValue> results;
  for (int i = 0; i < 40; ++i) results.push_back(coordinator.schedule(step));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(number(results[static_cast<size_t>(i)]), i);
}

TEST_F(ReadAheadTest, AClosureReadsBehindItsOwnPush) {
  const Variable v = variable(at::zeros({}, float64));
  const auto step = strategy_.function("step", [&] {
    strategy_.run([&] { v.assign_add(1.); });
    const Tensor first = v.value();
    v.assign_add(10.);
    strategy_.run([&] { v.assign_add(1.); });
    return first + 100 * v.value();
  });
  const ClusterCoordinator coordinator(strategy_, {.window = 3});
  std::vector<RemoteValue> results;
  for (int i = 0; i < 5; ++i) results.push_back(coordinator.schedule(step));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(number(results[static_cast<size_t>(i)]), 12 * i + 1 + 100 * (12 * i + 12));
  }
}

// What came with a push that the coordinator's write followed is too old for a closure that was
// scheduled after the write.
TEST_F(ReadAheadTest, AClosureSeesWhatWasWrittenBeforeItWasScheduled) {
  const Variable v = variable(at::zeros({}, float64)), table = variable(at::zeros({8, 2}));
  Gate gate;
  const auto read = [&] { return v.value() + table.sparse_read(at::tensor({1, 6}, int64)).sum(); };
  const auto step = strategy_.function("step", [&] {
    Tensor seen;
    strategy_.run([&] {
      seen = read().clone();
      v.assign_add(0.);
    });
    return seen;
  });
  const auto held = strategy_.function("held", [&] {
    strategy_.run([&] {
      read();
      v.assign_add(0.);
      gate.pass();
    });
  });
  const auto nothing = strategy_.function("nothing", [] {});
  const ClusterCoordinator coordinator(strategy_, {.window = 3});
  for (int i = 0; i < 3; ++i) coordinator.schedule(step);
  coordinator.schedule(held);
  coordinator.schedule(nothing);  // for which the push of the one before asks ahead, in vain
  ASSERT_TRUE(gate.wait_for(1));
  gate.open();
  coordinator.join();
  v.assign(100.);
  table.assign(at::ones({8, 2}));
  EXPECT_EQ(number(coordinator.schedule(step)), 104);
}

// A step that has looked rows up keeps them as they were, whatever it writes.
TEST_F(ReadAheadTest, RowsThatWereLookedUpStayAsTheyWere) {
  const Variable table = variable(at::ones({8, 2}));
  const auto step = strategy_.function("step", [&] {
    Tensor result;
    strategy_.run([&] {
      const Tensor ids = at::tensor({2, 5}, int64);
      const Tensor rows = table.impl().read_ascending_rows(ids);
      table.scatter_add({.values = at::full({2, 2}, 5.f), .indices = ids});
      result = at::stack({rows.detach().sum(), table.impl().read_ascending_rows(ids).sum()});
    });
    return result;
  });
  const ClusterCoordinator coordinator(strategy_);
  const Tensor result = coordinator.schedule(step).fetch().tensor();
  EXPECT_EQ(result[0].item<float>(), 4);
  EXPECT_EQ(result[1].item<float>(), 24);
}

}  // namespace
}  // namespace cohort::distribute
