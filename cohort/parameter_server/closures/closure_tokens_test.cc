// What a closure assigns in a step of several replicas counts once, however often it runs.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/closure_context.h"

namespace cohort::distribute {
namespace {

class ClosureTokensTest : public ::testing::Test {
 protected:
  Variable variable() const {
    const auto scope = strategy_.scope();
    return Variable(at::zeros({2}), {.name = "v", .aggregation = VariableAggregation::SUM});
  }
  // Runs the function as the closure of this number, as a coordinator does again when it got no
  // answer.
  void run(uint64_t closure) {
    const internal::SessionId session =
        internal::session_id(core_->cluster()->generation(), ++last_session_);
    worker_->call("leadership/take",
                  encode(internal::LeaderClaim{.generation = core_->cluster()->generation(),
                                               .session = session}),
                  {.timeout = kPatience});
    worker_->call("closures/run",
                  encode(internal::RunClosure{.function = "step",
                                              .id = closure,
                                              .session = session,
                                              .arguments = Structure::make_tuple({})}),
                  {.timeout = kPatience});
  }

  static constexpr std::chrono::seconds kPatience{20};
  const LogicalCpus cpus_{2};
  TestingCluster cluster_{1, 1};
  const ParameterServerStrategy strategy_{cluster_.resolver(),
                                          {.worker_devices = {"CPU:0", "CPU:1"}}};
  const std::shared_ptr<internal::ParameterServerCore> core_ = strategy_.parameter_server_core();
  const std::shared_ptr<internal::rpc::Channel> worker_ = core_->cluster()->channel({"worker", 0});
  uint64_t last_session_ = 0;
};

TEST_F(ClosureTokensTest, AlsoInMergeCall) {
  const Variable v = variable();
  strategy_.function("step", [&] {
    for (int i = 0; i < 2; ++i) {
      strategy_.run([&](ReplicaContext& replica) {
        replica.merge_call([&](Strategy&) { v.assign_add(at::ones({2})); });
        v.assign_add(at::ones({2}));  // of both replicas
      });
    }
    v.assign_add(at::ones({2}));
  });
  for (const uint64_t closure : {7, 7, 8, 7}) run(closure);
  EXPECT_EQ(v.value()[0].item<double>(), 2 * (2 * (1 + 2) + 1));
  EXPECT_EQ(core_->variables()->store().load(0).repeated, 2 * (2 + 1));
}

TEST_F(ClosureTokensTest, WhatWaitsForClosuresIsRefusedInReplicas) {
  std::atomic<int> refused{0};
  strategy_.function("step", [&] {
    strategy_.run([&] {
      try {
        internal::refuse_in_closure("join");
      } catch (const FailedPreconditionError&) {
        ++refused;
      }
    });
  });
  core_->cluster()->lead();
  run(1);
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace cohort::distribute
