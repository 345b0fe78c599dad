#include "cohort/keras/base/replica_tensors.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ReplicaTensors, EachTaskOfAProcessHasItsOwn) {
  ReplicaTensors losses;
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

TEST(ReplicaTensors, ThoseOfAllAreForgottenAtOnce) {
  const Task& task = Task::named("worker", 1);
  ReplicaTensors state;
  state.set({at::full({}, 1.0), at::full({}, 2.0)});
  {
    const ScopedTask as_worker(task);
    state.set({at::full({}, 3.0)});
    EXPECT_THAT(state.get(), SizeIs(1));
  }
  EXPECT_THAT(state.get(), SizeIs(2));
  state.clear_all();
  EXPECT_THAT(state.get(), IsEmpty());
  const ScopedTask as_worker(task);
  EXPECT_THAT(state.get(), IsEmpty());
}

}  // namespace
}  // namespace cohort::internal
