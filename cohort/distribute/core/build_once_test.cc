#include "cohort/distribute/core/build_once.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

TEST(BuildOnce, BuildsOnceForAllReplicasAndAcrossThem) {
  const MirroredStrategy strategy = mirrored(4);
  internal::BuildOnce once;
  int builds = 0;
  Variable built;
  strategy.run([&] {
    once("layer 'dense'", [&] {
      ++builds;
      EXPECT_TRUE(in_cross_replica_context());
      EXPECT_TRUE(get_strategy() == strategy);
      built = Variable(at::full({}, 1.0));
    });
    EXPECT_TRUE(once.done());
    EXPECT_EQ(built.components().size(), 4U);
  });
  EXPECT_EQ(builds, 1);
}

TEST(BuildOnce, MayBuildOthersInside) {
  const MirroredStrategy strategy = mirrored(3);
  internal::BuildOnce outer, inner;
  std::atomic<int> builds{0};
  strategy.run([&] {
    outer("model", [&] { inner("layer", [&] { ++builds; }); });
    inner("layer", [&] { ++builds; });
  });
  EXPECT_EQ(builds, 1);
}

TEST(BuildOnce, AFailedBuildCanBeTriedAgain) {
  const MirroredStrategy strategy = mirrored(2);
  internal::BuildOnce once;
  EXPECT_THROW(
      strategy.run([&] { once("layer", [] { throw InvalidArgumentError("no such shape"); }); }),
      InvalidArgumentError);
  EXPECT_FALSE(once.done());
  int builds = 0;
  strategy.run([&] { once("layer", [&] { ++builds; }); });
  EXPECT_EQ(builds, 1);
}

TEST(BuildOnce, OutsideOfAStepTheCallerBuilds) {
  internal::BuildOnce once;
  int builds = 0;
  for (int i = 0; i < 3; ++i) once("layer", [&] { ++builds; });
  EXPECT_EQ(builds, 1);
}

TEST(BuildOnce, ReplicasOneAfterAnotherBuildToo) {
  const MirroredStrategy strategy = mirrored(3);
  internal::BuildOnce once;
  int builds = 0;
  strategy.run(RunOptions{.concurrent = false}, [&](ReplicaContext& context) {
    once("layer", [&] { ++builds; });
    context.merge_call([](Strategy&) {});
  });
  EXPECT_EQ(builds, 1);
}

}  // namespace
}  // namespace cohort::distribute
