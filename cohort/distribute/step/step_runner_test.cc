#include "cohort/distribute/step/step_runner.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/train/checkpoint.h"

namespace cohort::internal {
namespace {

using data::Dataset;
using distribute::InputContext;
using distribute::mirrored;
using distribute::MirroredStrategy;
using distribute::ReplicaContext;
using distribute::thrown;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const StepFunction> sum_step() {
  return make_step("sum", [](const Tensor& x) { return x.sum(); });
}

// The sums of one pass, a number a step.
std::vector<int64_t> pass(StepRunner& runner, const std::shared_ptr<StepInput>& input) {
  std::vector<int64_t> sums;
  while (input->has_next()) {
    sums.push_back(runner.schedule(sum_step(), input).get().tensor().item<int64_t>());
  }
  return sums;
}

// Fails on batches that begin with `begin`.
std::shared_ptr<const StepFunction> failing_step(int64_t begin) {
  return make_step("failing", [begin](ReplicaContext& context, const Tensor& x) {
    if (x[0].item<int64_t>() == begin) {
      throw DataLossError(str("failed on replica ", context.replica_id_in_sync_group()));
    }
    return x.sum();
  });
}

TEST(StepRunner, RunsAStepForEachBatchUntilTheInputEnds) {
  for (const int replicas : {1, 2}) {
    const MirroredStrategy strategy = mirrored(replicas);
    const auto runner = strategy.core()->make_runner();
    const auto input = runner->make_input(Dataset::range(10).batch(4));
    EXPECT_THAT(pass(*runner, input), ElementsAre(0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9));
    EXPECT_FALSE(input->has_next());
    EXPECT_THAT(pass(*runner, input), ElementsAre());
    input->restart();
    EXPECT_THAT(pass(*runner, input), ElementsAre(6, 22, 17));
    runner->join();
  }
}

TEST(StepRunner, RunsUnderTheDefaultStrategyToo) {
  const auto runner = default_core()->make_runner();
  const auto input = runner->make_input(Dataset::range(4).batch(2));
  EXPECT_THAT(pass(*runner, input), ElementsAre(1, 5));
}

TEST(StepRunner, TakesAFunctionThatMakesTheDataset) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input([](const InputContext& context) {
    return Dataset::range(8).batch(context.get_per_replica_batch_size(4));
  });
  EXPECT_THAT(pass(*runner, input), ElementsAre(6, 22));
}

TEST(StepRunner, KeepsItsStrategyAlive) {
  std::unique_ptr<StepRunner> runner;
  std::shared_ptr<StepInput> input;
  {
    const MirroredStrategy strategy = mirrored(2);
    runner = strategy.core()->make_runner();
    input = runner->make_input(Dataset::range(4).batch(4));
  }
  EXPECT_THAT(pass(*runner, input), ElementsAre(6));
}

TEST(StepRunner, ReducesEachLeafAsTheStepSays) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input(Dataset::range(6).batch(6).repeat());
  const auto returned = [](const Tensor& x) {
    const Tensor real = x.to(float64);
    return dict({{"sum", x.sum()}, {"mean", real.mean()}, {"rows", x * 10}});
  };
  using enum StepReduction;
  const Structure result =
      runner->schedule(make_step("each", returned, {kSum, kMean, kConcat}), input).get();
  EXPECT_EQ(str(result), "{'sum': 15, 'mean': 2.5, 'rows': [0, 10, 20, 30, 40, 50]}");
  const auto nothing = make_step("nothing", [](const Tensor&) {});
  EXPECT_EQ(str(runner->schedule(nothing, input).get()), "()");

  auto wrong = runner->schedule(make_step("wrong", returned, {kSum, kMean}), input);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { wrong.get(); }),
              HasSubstr("step 'wrong' has 2 reductions, but its result has 3 leaves"));
  EXPECT_THROW(runner->join(), InvalidArgumentError);
}

// An input whose order differs in every pass.
std::shared_ptr<StepInput> shuffled_input(StepRunner& runner) {
  return runner.make_input(Dataset::range(12).shuffle(12, {.seed = 3}).batch(2));
}

int64_t next_sum(StepRunner& runner, const std::shared_ptr<StepInput>& input) {
  return runner.schedule(sum_step(), input).get().tensor().item<int64_t>();
}

TEST(StepRunner, CheckpointsHoldThePositionOfTheInput) {
  for (const int replicas : {1, 2}) {
    for (const bool looks_ahead : {false, true}) {
      SimulatedFileSystem files;
      const MirroredStrategy strategy = mirrored(replicas);
      const auto runner = strategy.core()->make_runner();
      const auto input = shuffled_input(*runner);
      const std::vector<int64_t> first_pass = pass(*runner, input);
      input->restart();
      next_sum(*runner, input);
      if (looks_ahead) {
        EXPECT_TRUE(input->has_next());
      }
      train::Checkpoint saved({{"input", input}});
      use_file_system(saved, files);
      saved.write("dir/ckpt");
      const std::vector<int64_t> rest = pass(*runner, input);
      EXPECT_EQ(rest.size(), 5u);
      input->restart();
      const std::vector<int64_t> third_pass = pass(*runner, input);
      EXPECT_NE(first_pass, third_pass);

      const auto again = shuffled_input(*runner);
      train::Checkpoint restored({{"input", again}});
      use_file_system(restored, files);
      restored.read("dir/ckpt").assert_consumed();
      EXPECT_EQ(pass(*runner, again), rest);
      EXPECT_FALSE(again->has_next());
      again->restart();
      EXPECT_EQ(pass(*runner, again), third_pass);
    }
  }
}

TEST(StepRunner, AnInputThatWasSavedAtItsEndIsAtItsEnd) {
  SimulatedFileSystem files;
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = shuffled_input(*runner);
  pass(*runner, input);
  train::Checkpoint checkpoint({{"input", input}});
  use_file_system(checkpoint, files);
  checkpoint.write("dir/ckpt");
  input->restart();
  const std::vector<int64_t> second_pass = pass(*runner, input);
  checkpoint.read("dir/ckpt").assert_consumed();
  EXPECT_FALSE(input->has_next());
  input->restart();
  EXPECT_EQ(pass(*runner, input), second_pass);
}

TEST(StepRunner, AnErrorOfAStepReachesItsFutureAndJoin) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input(Dataset::range(12).batch(4));
  auto before = runner->schedule(failing_step(6), input);
  auto failed = runner->schedule(failing_step(6), input);  // of which replica 1 gets 6, 7
  EXPECT_EQ(before.get().tensor().item<int64_t>(), 6);
  EXPECT_THAT(thrown<DataLossError>([&] { failed.get(); }), HasSubstr("failed on replica 1"));
  EXPECT_THAT(thrown<DataLossError>([&] { runner->join(); }), HasSubstr("failed on replica 1"));
  runner->join();  // which has told it
  EXPECT_THAT(pass(*runner, input), ElementsAre(8 + 9 + 10 + 11));
}

TEST(StepRunner, ALoopThatTakesNoResultsEndsSoonAfterAnError) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input(Dataset::range(4).batch(4).repeat());
  int64_t scheduled = 0;
  const auto loop = [&] {
    while (input->has_next() && scheduled < 100) {
      runner->schedule(failing_step(2), input);
      ++scheduled;
    }
  };
  EXPECT_THROW(loop(), DataLossError);
  EXPECT_EQ(scheduled, 1);
  runner->join();
}

TEST(StepRunner, AnErrorOfTheInputIsThatOfItsStep) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input(Dataset::range(6)
                                            .map([](int64_t x) {
                                              if (x == 2) throw NotFoundError("element 2 is lost");
                                              return x;
                                            })
                                            .batch(2));
  ASSERT_TRUE(input->has_next());
  EXPECT_EQ(runner->schedule(sum_step(), input).get().tensor().item<int64_t>(), 1);
  ASSERT_TRUE(input->has_next());
  auto lost = runner->schedule(sum_step(), input);
  EXPECT_THAT(thrown<NotFoundError>([&] { lost.get(); }), HasSubstr("element 2 is lost"));
  EXPECT_THROW(runner->join(), NotFoundError);
}

TEST(StepRunner, AStepBeyondTheEndIsOutOfRange) {
  const MirroredStrategy strategy = mirrored(2);
  const auto runner = strategy.core()->make_runner();
  const auto input = runner->make_input(Dataset::range(4).batch(4));
  runner->schedule(sum_step(), input);
  auto beyond = runner->schedule(sum_step(), input);
  EXPECT_THAT(thrown<OutOfRangeError>([&] { beyond.get(); }), HasSubstr("has_next()"));
  EXPECT_THROW(runner->join(), OutOfRangeError);
  EXPECT_FALSE(input->has_next());
}

TEST(StepRunner, RefusesTheInputOfAnotherStrategy) {
  const MirroredStrategy strategy = mirrored(2);
  const MirroredStrategy other({"CPU:0"});
  const auto foreign = other.core()->make_runner()->make_input(Dataset::range(4).batch(4));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { strategy.core()->make_runner()->schedule(sum_step(), foreign); }),
              HasSubstr("step 'sum' was scheduled on another strategy's input"));
}

}  // namespace
}  // namespace cohort::internal
