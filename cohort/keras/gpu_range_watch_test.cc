// Labels and ids of a simulated GPU that are out of range: errors that come later, and name them.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <limits>

#include "cohort/core/structure/device.h"
#include "cohort/keras/base/range_watch.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using distribute::OneDeviceStrategy;
using distribute::StepGraphs;
using internal::RangeWatch;
using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor moved(const Tensor& host) { return host.to(internal::torch_device("GPU:0")); }
Tensor moved(const std::vector<int64_t>& numbers) { return moved(at::tensor(numbers, at::kLong)); }

class GpuRangeWatchTest : public ::testing::Test {
 protected:
  const testing::SimulatedGpus gpus_{2};
  const OneDeviceStrategy strategy_{"GPU:0"};
};

TEST_F(GpuRangeWatchTest, ALayerThatIsCalledTwiceInAStepMissesNothing) {
  for (const bool capture : {false, true}) {
    const OneDeviceStrategy strategy("GPU:0");
    RangeWatch watch("number");
    const StepGraphs graphs;
    const auto step = [&](const Tensor& first, const Tensor& second) {
      return watch.look(first, 5) + watch.look(second, 5);
    };
    const auto run = [&](const Tensor& first, const Tensor& second) {
      return capture ? strategy.run({.capture = graphs}, step, first, second).value(0)
                     : strategy.run(step, first, second).value(0);
    };
    const Tensor good = moved({0, 4}), too = moved({3, 1});
    for (int i = 0; i < 5; ++i) run(good, too);
    EXPECT_EQ(graphs.size(), capture ? 1 : 0) << graphs.why_not();
    const Tensor cut = run(moved({7, 1}), good);
    EXPECT_TRUE(at::equal(cut.cpu(), at::tensor({4, 5}, at::kLong)));
    EXPECT_THAT([&] { run(good, too); }, ThrowsMessage<InvalidArgumentError>(
                                             HasSubstr("number 7 of step 6 is outside [0, 5)")));
    for (int i = 0; i < 3; ++i) run(good, too);
    EXPECT_THAT(
        [&] {
          run(good, moved({-3, 1}));
          run(good, too);
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("number -3 of step 11 is")));
  }
}

TEST_F(GpuRangeWatchTest, EachHasItsOwnRangeAndThread) {
  RangeWatch one("one"), other("other");
  const auto step = [&](const Tensor& x) {
    one.look(x, 10);
    one.look(x, 20);
    return other.look(x, 30);
  };
  strategy_.run(step, moved({9}));
  strategy_.run(step, moved({25}));
  const OneDeviceStrategy second("GPU:0");
  second.run(step, moved({9}));
  EXPECT_THAT(
      [&] { RangeWatch::check(*strategy_.core()); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("one 25 of step 2 is outside [0, 10)")));
  EXPECT_THAT(
      [&] { RangeWatch::check(*strategy_.core()); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("one 25 of step 2 is outside [0, 20)")));
  RangeWatch::check(*strategy_.core());
  RangeWatch::check(*second.core());
}

TEST_F(GpuRangeWatchTest, ReplicasOfTwoGpusFindTheirOwn) {
  const distribute::MirroredStrategy strategy({"GPU:0", "GPU:1"});
  RangeWatch watch("number");
  const auto step = [&](distribute::ReplicaContext& context) {
    const int64_t number = context.replica_id_in_sync_group() * 6;
    return watch.look(constant({number, int64_t{1}}), 5);
  };
  strategy.run(step);
  EXPECT_THAT([&] { strategy.run(step); }, ThrowsMessage<InvalidArgumentError>(
                                               HasSubstr("number 6 of step 1 is outside [0, 5)")));
}

TEST_F(GpuRangeWatchTest, IdsOfAnyDtypeAreWatched) {
  const auto scope = strategy_.scope();
  const layers::Embedding embedding(4, 2, {.embeddings_initializer = "ones", .name = "table"});
  const auto look_up = [&](const Tensor& ids) {
    return strategy_.run([&](const Tensor& x) { return embedding(x); }, ids).value(0);
  };
  look_up(moved({0, 3}));
  const DeviceCounts before = device_counts();
  for (const DType dtype : {int32, uint8, float32, float64, at::kHalf}) {
    EXPECT_EQ(look_up(moved(at::tensor({1.9, 3.9}).to(dtype))).sizes(), at::IntArrayRef({2, 2}));
  }
  EXPECT_EQ((device_counts() - before).host_waits, 5);  // for copies of the ids
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double id : {4.0, -1.0, 1e30, -1e30, kNaN}) {
    look_up(moved(at::tensor({1.0, id})));
    EXPECT_THAT(
        [&] {
          look_up(moved({0, 3}));
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("layer 'table': the id ")));
  }
}

}  // namespace
}  // namespace cohort::keras
