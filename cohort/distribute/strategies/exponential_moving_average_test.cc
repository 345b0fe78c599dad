#include "cohort/distribute/strategies/exponential_moving_average.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/train/checkpoint.h"

namespace cohort::train {
namespace {

using distribute::mirrored;
using distribute::number;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

double value_of(const Variable& variable) { return variable.value().item<double>(); }

TEST(ExponentialMovingAverage, FollowsTheVariable) {
  const Variable w(number(10), {.name = "w"});
  const ExponentialMovingAverage ema(0.9);
  EXPECT_EQ(ema.average(w), std::nullopt);
  EXPECT_EQ(ema.average_name(w), "w/ExponentialMovingAverage");
  ema.apply({w});
  const Variable average = *ema.average(w);
  EXPECT_EQ(value_of(average), 10);
  EXPECT_EQ(average.name(), "w/ExponentialMovingAverage");
  EXPECT_FALSE(average.trainable());
  w.assign(20.);
  ema.apply({w});
  EXPECT_NEAR(value_of(average), 11, 1e-5);
  ema.apply({w});
  EXPECT_NEAR(value_of(average), 11.9, 1e-5);
  EXPECT_EQ(ema.variables().size(), 1u);
}

TEST(ExponentialMovingAverage, MovesFastAtFirst) {
  const Variable w(number(0), {.name = "w"}), updates(number(0), {.name = "updates"});
  const ExponentialMovingAverage ema(0.5, {.num_updates = updates, .name = "Slow"});
  ema.apply({w});
  w.assign(1.);
  ema.apply({w});  // a decay of 1 / 10
  EXPECT_NEAR(value_of(*ema.average(w)), 0.9, 1e-6);
  updates.assign(1000.);
  w.assign(0.);
  ema.apply({w});
  EXPECT_NEAR(value_of(*ema.average(w)), 0.45, 1e-6);
  EXPECT_EQ(ema.average_name(w), "w/Slow");
}

TEST(ExponentialMovingAverage, TakesAVariableAsDecay) {
  const Variable w(number(0), {.name = "w"}), decay(number(0.5), {.name = "decay"});
  const ExponentialMovingAverage ema(decay);
  ema.apply({w});
  w.assign(1.);
  ema.apply({w});
  decay.assign(0.);
  w.assign(3.);
  ema.apply({w});
  EXPECT_EQ(value_of(*ema.average(w)), 3);
}

// Averages are made in the step, and every replica has the same.
TEST(ExponentialMovingAverage, IsUpdatedOnceForAllReplicas) {
  const auto strategy = mirrored(3);
  const auto scope = strategy.scope();
  const Variable w(number(4), {.name = "w"});
  const ExponentialMovingAverage ema(0.75);
  strategy.run([&] { ema.apply({w}); });
  w.assign(8.);
  const auto averages = strategy.run([&] {
    ema.apply({w});
    return ema.average(w)->value().detach().clone();
  });
  EXPECT_THAT(distribute::values(averages), ElementsAre(5, 5, 5));
}

TEST(ExponentialMovingAverage, WorksBetweenTasks) {
  distribute::run_all_tasks(2, 2, [](const distribute::Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const Variable w(number(4), {.name = "w"});
    const ExponentialMovingAverage ema(0.75);
    ema.apply({w});
    w.assign(8.);
    strategy.run([&] { ema.apply({w}); });
    EXPECT_NEAR(value_of(*ema.average(w)), 5, 1e-6);
  });
}

TEST(ExponentialMovingAverage, SwapsWeights) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable w(number(1), {.name = "w"});
  const ExponentialMovingAverage ema(0.5);
  ema.apply({w});
  w.assign(3.);
  ema.swap_weights({w});
  EXPECT_THAT(distribute::components(w), ElementsAre(1, 1));
  EXPECT_EQ(value_of(*ema.average(w)), 3);
  ema.swap_weights({w});
  EXPECT_EQ(value_of(w), 3);
  EXPECT_THAT(
      thrown<FailedPreconditionError>([&] { strategy.run([&] { ema.swap_weights({w}); }); }),
      HasSubstr("between steps"));
  const Variable other(number(1), {.name = "other"});
  EXPECT_THAT(thrown<NotFoundError>([&] { ema.swap_weights({other}); }), HasSubstr("'other'"));
}

TEST(ExponentialMovingAverage, IsSavedAndRestoredBeforeItsAveragesExist) {
  const internal::TemporaryFolder folder;
  const Variable w(number(1), {.name = "w"});
  const ExponentialMovingAverage ema(0.5);
  ema.apply({w});
  w.assign(3.);
  ema.apply({w});
  const std::string path = Checkpoint({{"w", w}, {"ema", ema}}).write(folder / "ckpt");
  const Variable again(number(0), {.name = "w"});
  const ExponentialMovingAverage restored(0.5);
  const LoadStatus status = Checkpoint({{"w", again}, {"ema", restored}}).read(path);
  restored.apply({again});
  status.assert_consumed();
  EXPECT_NEAR(value_of(*restored.average(again)), 2.5, 1e-6);  // of 2 and 3
}

TEST(ExponentialMovingAverage, RefusesWhatHasNoAverage) {
  const Variable count(at::tensor({1}, int64), {.name = "count"});
  const ExponentialMovingAverage ema(0.5);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { ema.apply({count}); }), HasSubstr("'count'"));
  EXPECT_THAT(ema.variables(), IsEmpty());
}

}  // namespace
}  // namespace cohort::train
