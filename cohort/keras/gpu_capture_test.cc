// Steps on a simulated GPU that are recorded as one graph: the bits of steps that run as they are.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <ostream>

#include "cohort/core/structure/device.h"
#include "cohort/core/testing_folder.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"
#include "cohort/testing/device/gpu_and_cpu.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::OneDeviceStrategy;
using distribute::StepGraphs;
using optimizers::Optimizer;
using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Tensor put_on_gpu(const Tensor& host) { return host.to(internal::torch_device("GPU:0")); }

Structure batch_of(int64_t seed, int64_t rows = 8) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const Tensor x = at::randn({rows, 6}), y = at::randint(3, {rows}, at::kLong);
  return tuple(put_on_gpu(x), put_on_gpu(y));
}

// A model with all that changes from step to step, and a step of a custom loop.
struct Trainer {
  explicit Trainer(const Optimizer& with) : optimizer(with) {}

  Tensor operator()(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor noise = random::normal(x.sizes(), {.stddev = 0.1});
    const Tensor scores = model(x + noise, {.training = true});
    const Tensor loss = loss_of(y, scores).mean();
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean.update_state(loss);
    return loss;
  }

  std::vector<Tensor> state() const {
    std::vector<Tensor> all = values_of(model.weights());
    for (const Tensor& value : values_of(optimizer.variables())) all.push_back(value);
    all.push_back(mean.result().cpu());
    return all;
  }

  const Optimizer optimizer;
  const Sequential model{{layers::Dense(8, {.activation = "tanh"}), layers::BatchNormalization(),
                          layers::Dropout(0.3), layers::Dense(3)}};
  const losses::SparseCategoricalCrossentropy loss_of{
      {.from_logits = true, .reduction = losses::Reduction::NONE}};
  const metrics::Mean mean;
};

class GpuCaptureTest : public ::testing::Test {
 protected:
  const testing::SimulatedGpus gpus_{2};
};

void expect_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(at::equal(found[i], expected[i]))
        << i << ": " << found[i] << " instead of " << expected[i];
  }
}

struct Loop {
  std::vector<Tensor> state;  // and the losses
  size_t graphs = 0;
  std::string why_not;
  DeviceCounts last_step;
};

// What `between` does before step i.
using Between = std::function<void(int step, const Trainer&)>;

Loop train(
    const Optimizer& optimizer, bool capture, int steps = 9, const Between& between = {},
    const std::function<int64_t(int)>& rows = [](int) { return 8; }) {
  utils::set_random_seed(7);
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Trainer trainer(optimizer);
  const StepGraphs graphs;
  std::vector<Tensor> losses;
  Loop loop;
  for (int i = 0; i < steps; ++i) {
    if (between) between(i, trainer);
    const Structure batch = batch_of(i, rows(i));
    const DeviceCounts before = device_counts();
    losses.push_back(
        (capture ? strategy.run({.capture = graphs}, trainer, batch) : strategy.run(trainer, batch))
            .value(0));
    loop.last_step = device_counts() - before;
  }
  loop.state = trainer.state();
  for (const Tensor& loss : losses) loop.state.push_back(loss.cpu());
  loop.graphs = graphs.size();
  loop.why_not = graphs.why_not();
  return loop;
}

struct RecordedOptimizer {
  const char* name;
  std::function<Optimizer()> make;

  friend std::ostream& operator<<(std::ostream& out, const RecordedOptimizer& one) {
    return out << one.name;
  }
};

class GpuCaptureOptimizersTest : public ::testing::TestWithParam<RecordedOptimizer> {
 protected:
  const testing::SimulatedGpus gpus_{1};
};

TEST_P(GpuCaptureOptimizersTest, ARecordedStepHasTheBitsOfOneThatRunsAsItIs) {
  const Loop recorded = train(GetParam().make(), true);
  EXPECT_THAT(recorded.why_not, IsEmpty());
  EXPECT_EQ(recorded.graphs, 1);
  EXPECT_EQ(recorded.last_step.replays, 1);
  expect_equal(recorded.state, train(GetParam().make(), false).state);
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuCaptureOptimizersTest,
    ::testing::Values(
        RecordedOptimizer{"SGD", [] { return optimizers::SGD({.learning_rate = 0.1}); }},
        RecordedOptimizer{"Nesterov",
                          [] {
                            return optimizers::SGD(
                                {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
                          }},
        RecordedOptimizer{"Adam", [] { return optimizers::Adam({.learning_rate = 0.01}); }},
        RecordedOptimizer{
            "ScheduledAdam",
            [] {
              return optimizers::Adam(
                  {.learning_rate = optim::ExponentialDecay(
                       {.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5})});
            }},
        RecordedOptimizer{"RMSprop", [] { return optimizers::RMSprop({.learning_rate = 0.01}); }},
        RecordedOptimizer{"CenteredRMSprop",
                          [] {
                            return optimizers::RMSprop(
                                {.learning_rate = 0.01, .momentum = 0.5, .centered = true});
                          }},
        RecordedOptimizer{"Adagrad", [] { return optimizers::Adagrad({.learning_rate = 0.01}); }},
        RecordedOptimizer{"Adadelta", [] { return optimizers::Adadelta({.learning_rate = 0.1}); }},
        RecordedOptimizer{"Adamax", [] { return optimizers::Adamax({.learning_rate = 0.01}); }},
        RecordedOptimizer{"Nadam", [] { return optimizers::Nadam({.learning_rate = 0.01}); }},
        RecordedOptimizer{"Ftrl", [] { return optimizers::Ftrl({.learning_rate = 0.01}); }},
        RecordedOptimizer{"Lion", [] { return optimizers::Lion({.learning_rate = 0.01}); }},
        RecordedOptimizer{"AveragesDecayAndClipvalue",
                          [] {
                            return optimizers::Adam({.learning_rate = 0.01,
                                                     .clipvalue = 0.02,
                                                     .weight_decay = 0.01,
                                                     .use_ema = true,
                                                     .ema_momentum = 0.9});
                          }},
        RecordedOptimizer{
            "Clipnorm", [] { return optimizers::Adam({.learning_rate = 0.01, .clipnorm = 0.05}); }},
        RecordedOptimizer{
            "GlobalClipnorm",
            [] { return optimizers::SGD({.learning_rate = 0.1, .global_clipnorm = 0.1}); }},
        RecordedOptimizer{"FixedLossScale",
                          [] {
                            return mixed_precision::LossScaleOptimizer(
                                optimizers::SGD({.learning_rate = 0.1, .global_clipnorm = 0.1}),
                                {.dynamic = false, .initial_scale = 128});
                          }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(GpuCaptureTest, AReplayIsOneLaunchAndWaitsForNothing) {
  const DeviceCounts step = train(optimizers::Adam(), true).last_step;
  EXPECT_EQ(step.replays, 1);
  EXPECT_EQ(step.host_waits, 0);
  EXPECT_EQ(step.to_device, 1);  // what the host draws and counts, together
  EXPECT_EQ(step.to_host, 0);    // but within the graph
  // Copies of the two arguments, the graph, a copy of the result.
  EXPECT_EQ(step.kernels, 4);
}

TEST_F(GpuCaptureTest, EveryFormOfArgumentsHasItsGraph) {
  const auto rows = [](int step) { return step % 3 == 2 ? 5 : 8; };
  const Loop recorded = train(optimizers::Adam(), true, 15, {}, rows);
  EXPECT_EQ(recorded.graphs, 2);
  expect_equal(recorded.state, train(optimizers::Adam(), false, 15, {}, rows).state);
}

TEST_F(GpuCaptureTest, WhatIsSetBetweenStepsIsUsed) {
  const auto run = [](bool capture) {
    return train(optimizers::Adam({.learning_rate = 0.01}), capture, 10,
                 [](int step, const Trainer& trainer) {
                   if (step >= 5) trainer.optimizer.set_learning_rate(0.1 / step);
                   if (step == 6) trainer.model.weights()[0].assign_add(at::full({6, 8}, 0.5));
                   if (step == 7) trainer.mean.reset_state();
                   if (step == 8) random::set_seed(11);
                 });
  };
  const Loop recorded = run(true);
  EXPECT_EQ(recorded.graphs, 1);
  expect_equal(recorded.state, run(false).state);
}

TEST_F(GpuCaptureTest, RestoredCheckpointsAreWhereTheGraphReads) {
  const internal::TemporaryFolder folder;
  const auto run = [&](bool capture) {
    const std::string path = folder / (capture ? "recorded" : "plain");
    return train(optimizers::Adam({.learning_rate = 0.01}), capture, 9,
                 [&](int step, const Trainer& trainer) {
                   const train::Checkpoint checkpoint(
                       {{"model", trainer.model}, {"optimizer", trainer.optimizer}});
                   if (step == 2) checkpoint.write(path);
                   if (step == 7) checkpoint.read(path);
                 });
  };
  const Loop recorded = run(true);
  EXPECT_EQ(recorded.last_step.replays, 1);
  expect_equal(recorded.state, run(false).state);
}

TEST_F(GpuCaptureTest, LabelsOutOfRangeAreFoundAStepLater) {
  const OneDeviceStrategy strategy("GPU:0");
  const losses::SparseCategoricalCrossentropy loss(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const StepGraphs graphs;
  const auto step = [&](const Tensor& labels) { return loss(labels, ones({2, 3})); };
  const auto losses_of = [&](const Tensor& labels) {
    return strategy.run({.capture = graphs}, step, put_on_gpu(labels)).value(0).cpu();
  };
  for (int i = 0; i < 5; ++i) losses_of(at::tensor({0, 2}, at::kLong));
  ASSERT_EQ(graphs.size(), 1) << graphs.why_not();
  EXPECT_TRUE(losses_of(at::tensor({1, 3}, at::kLong))[1].isnan().item<bool>());
  EXPECT_THAT(
      [&] {
        losses_of(at::tensor({0, 2}, at::kLong));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("label 3 of step 6 is outside")));
  EXPECT_FALSE(losses_of(at::tensor({0, 2}, at::kLong)).isnan().any().item<bool>());
}

TEST_F(GpuCaptureTest, WhatAnOptimizerCannotRecordIsNamed) {
  const auto reason = [](const Optimizer& optimizer) { return train(optimizer, true).why_not; };
  EXPECT_THAT(reason(optimizers::Adam({.not_finite = optimizers::NotFinite::SKIP})),
              HasSubstr("skips updates that are not finite"));
  EXPECT_THAT(reason(optimizers::Adam({.gradient_accumulation_steps = 2})),
              HasSubstr("gradient_accumulation_steps is 2"));
  EXPECT_THAT(reason(optimizers::Adam({.use_ema = true, .ema_overwrite_frequency = 3})),
              HasSubstr("rule Adam takes the numbers of a step from the host"));
}

}  // namespace
}  // namespace cohort::keras
