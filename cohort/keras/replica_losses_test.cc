#include "cohort/keras/replica_losses.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ReplicaLosses, EachTaskOfAProcessHasItsOwn) {
  ReplicaLosses losses;
  losses.add(at::full({}, 1.0));
  {
    const ScopedTask as_worker(Task::named("worker", 1));
    EXPECT_THAT(losses.get(), IsEmpty());
    losses.add(at::full({}, 2.0));
    losses.add(at::full({}, 3.0));
    EXPECT_THAT(losses.get(), SizeIs(2));
    losses.clear();
    EXPECT_THAT(losses.get(), IsEmpty());
  }
  EXPECT_THAT(losses.get(), SizeIs(1));
}

}  // namespace
}  // namespace cohort::internal
