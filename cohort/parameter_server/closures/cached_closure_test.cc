// Functions that are scheduled while reads of variables are cached, on an in-process cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/cached_reads.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;
using ::testing::HasSubstr;

double scalar(const RemoteValue& value) { return value.fetch().tensor().item<double>(); }

class CachedClosureTest : public ::testing::TestWithParam<int> {
 protected:
  static ParameterServerStrategyOptions options() {
    ParameterServerStrategyOptions options;
    for (int i = 0; i < GetParam(); ++i) {
      options.worker_devices.push_back("CPU:" + std::to_string(i));
    }
    return options;
  }
  Variable variable() const {
    const auto scope = strategy_.scope();
    return Variable(2., {.name = "v"});
  }

  const LogicalCpus cpus_{GetParam()};
  TestingCluster cluster_{1, 1};
  const ParameterServerStrategy strategy_{cluster_.resolver(), options()};
};
INSTANTIATE_TEST_SUITE_P(Replicas, CachedClosureTest, ::testing::Values(1, 2));

// TensorFlow's testVariableCaching.
TEST_P(CachedClosureTest, ReadsWhatItReadFirstAlsoOnceTheScopeHasEnded) {
  const Variable v = variable();
  const auto assign = [&] {
    v.value();
    v.assign(5.);
    return v.value();
  };
  const ClusterCoordinator coordinator(strategy_);
  const RemoteValue cached = [&] {
    const auto scope = cache_variable_reads();
    return coordinator.schedule(assign);
  }();
  EXPECT_EQ(scalar(cached), 2);
  EXPECT_EQ(v.value().item<double>(), 5);
  v.assign(2.);
  EXPECT_EQ(scalar(coordinator.schedule(assign)), 5);  // outside of the scope
}

// Each closure has a scope of its own, which is not that of the program.
TEST_P(CachedClosureTest, ReadsAnewInEachClosure) {
  const Variable v = variable();
  const ClusterCoordinator coordinator(strategy_);
  const auto scope = cache_variable_reads();
  const auto read = [&] { return v.value(); };
  EXPECT_EQ(v.value().item<double>(), 2);
  EXPECT_EQ(scalar(coordinator.schedule(read)), 2);
  v.assign(5.);
  EXPECT_EQ(scalar(coordinator.schedule(read)), 5);
  EXPECT_EQ(v.value().item<double>(), 2);
}

TEST_P(CachedClosureTest, ReadsTheSameInAllOfItsSteps) {
  const Variable v = variable();
  const auto steps = [&] {
    const auto read = [&] {
      return strategy_.reduce(ReduceOp::SUM, strategy_.run([&] { return v.value(); }));
    };
    const Tensor before = read();
    v.assign(5.);
    return before * 100 + read();
  };
  const ClusterCoordinator coordinator(strategy_);
  const int replicas = GetParam();
  {
    const auto scope = cache_variable_reads();
    EXPECT_EQ(scalar(coordinator.schedule(steps)), 202 * replicas);
  }
  v.assign(2.);
  EXPECT_EQ(scalar(coordinator.schedule(steps)), 205 * replicas);
}

TEST_P(CachedClosureTest, IsInAScopeAlready) {
  const ClusterCoordinator coordinator(strategy_);
  const auto nests = [] { const auto scope = cache_variable_reads(); };
  {
    const auto scope = cache_variable_reads();
    coordinator.schedule(nests);
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.join(); }), HasSubstr("do not nest"));
  coordinator.schedule(nests);
  coordinator.join();
}

}  // namespace
}  // namespace cohort::distribute
