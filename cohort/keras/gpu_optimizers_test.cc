// Optimizers on simulated GPUs: variables and slots as on the CPU.
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <ostream>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/testing/device/gpu_and_cpu.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras {
namespace {

using optimizers::Optimizer;

struct OptimizerCase {
  const char* name;
  std::function<Optimizer()> make;
  bool sparse = false;
  constraints::Constraint constraint = {};

  friend std::ostream& operator<<(std::ostream& out, const OptimizerCase& one) { return out << one.name; }
};

// Trains two layers for four steps.
std::vector<Tensor> train(const distribute::Strategy& strategy, const OptimizerCase& one) {
  at::manual_seed(3);
  const Sequential model =
      one.sparse
          ? Sequential({layers::Embedding(50, 4, {.embeddings_constraint = one.constraint}),
                        layers::Flatten(), layers::Dense(1)})
          : Sequential({layers::Dense(
                            8, {.activation = "tanh", .kernel_constraint = one.constraint}),
                        layers::Dense(1)});
  const Optimizer optimizer = one.make();
  const Tensor x = one.sparse ? at::randint(50, {16, 3}, at::kLong) : at::randn({16, 4});
  const Tensor y = at::randn({16, 1});
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(tuple(x, y)).batch(16).repeat());
  auto iterator = dataset.iterator();
  for (int i = 0; i < 4; ++i) {
    strategy.run(
        [&](const Tensor& xs, const Tensor& ys) {
          GradientTape tape;
          const Tensor loss = (model(xs, {.training = true}) - ys).pow(2).mean();
          const auto gradients = tape.gradient(loss, model.trainable_variables());
          optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
          return loss;
        },
        *iterator.next());
  }
  auto all = values_of(model.trainable_variables());
  for (const Tensor& value : values_of(optimizer.variables())) all.push_back(value);
  return all;
}

// A program's own rule, for slices of the host alone.
class OwnRule final : public optim::UpdateRule {
 public:
  std::string name() const override { return "Own"; }
  optim::RuleConfig config() const override { return {.name = name(), .values = {}}; }
  std::vector<optim::SlotSpec> slots() const override { return {{.name = "m"}}; }
  std::vector<optim::SlotList> slot_lists() const override {
    return {{.name = "_momentums", .slot = "m"}};
  }
  int num_slots() const override { return 1; }
  bool zero_gradient_is_no_op() const override { return false; }
  optim::StepScalars prepare(double learning_rate, int64_t) const override {
    return {.step_size_float32 = static_cast<float>(learning_rate)};
  }
  void update(const optim::StepScalars& scalars, const optim::Slice& slice) const override {
    auto* param = static_cast<float*>(slice.param);
    auto* m = static_cast<float*>(slice.slots[0]);
    const auto* gradient = static_cast<const float*>(slice.gradient);
    for (int64_t i = 0; i < slice.size; ++i) {
      m[i] = 0.5f * m[i] + gradient[i];
      param[i] -= scalars.step_size_float32 * m[i];
    }
  }
};

class OwnOptimizer : public Optimizer {
 public:
  OwnOptimizer() : Optimizer("Own", std::make_unique<OwnRule>(), 0.05, {}) {}
};

class GpuOptimizersTest : public ::testing::TestWithParam<OptimizerCase> {
 protected:
  const testing::SimulatedGpus gpus_{2};
};

TEST_P(GpuOptimizersTest, UpdateAsOnTheCpu) {
  expect_same_on_gpu(
      [&](const distribute::Strategy& strategy) { return train(strategy, GetParam()); });
}

TEST_P(GpuOptimizersTest, UpdateAsOnTwoCpus) {
  expect_same_on_two_gpus(
      [&](const distribute::Strategy& strategy) { return train(strategy, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuOptimizersTest,
    ::testing::Values(
        OptimizerCase{"SGD", [] { return optimizers::SGD({.learning_rate = 0.1}); }},
        OptimizerCase{"Momentum",
                      [] { return optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9}); }},
        OptimizerCase{"Nesterov",
                      [] {
                        return optimizers::SGD(
                            {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
                      }},
        OptimizerCase{"Adam", [] { return optimizers::Adam({.learning_rate = 0.01}); }},
        OptimizerCase{"Amsgrad",
                      [] { return optimizers::Adam({.learning_rate = 0.01, .amsgrad = true}); }},
        OptimizerCase{"RMSprop", [] { return optimizers::RMSprop({.learning_rate = 0.01}); }},
        OptimizerCase{"Adafactor", [] { return optimizers::Adafactor({.learning_rate = 0.01}); }},
        OptimizerCase{"AdamWithoutDecayOfBiases",
                      [] {
                        const optimizers::AdamW adam({.learning_rate = 0.01, .weight_decay = 0.5});
                        adam.exclude_from_weight_decay({}, {"bias"});
                        return adam;
                      }},
        OptimizerCase{"Adagrad", [] { return optimizers::Adagrad({.learning_rate = 0.01}); }},
        OptimizerCase{"Ftrl", [] { return optimizers::Ftrl({.learning_rate = 0.01}); }},
        OptimizerCase{"Lion", [] { return optimizers::Lion({.learning_rate = 0.01}); }},
        OptimizerCase{"Clipnorm",
                      [] { return optimizers::Adam({.learning_rate = 0.01, .clipnorm = 0.1}); }},
        OptimizerCase{
            "GlobalClipnorm",
            [] { return optimizers::Adam({.learning_rate = 0.01, .global_clipnorm = 0.1}); }},
        OptimizerCase{
            "AveragesDecayAndClipvalue",
            [] {
              return optimizers::Adam(
                  {.learning_rate = 0.01, .clipvalue = 0.1, .weight_decay = 0.1, .use_ema = true});
            }},
        OptimizerCase{"Accumulation",
                      [] {
                        return optimizers::Adam(
                            {.learning_rate = 0.01, .gradient_accumulation_steps = 2});
                      }},
        OptimizerCase{"SkippedSteps",
                      [] {
                        return optimizers::Adam(
                            {.learning_rate = 0.01, .not_finite = optimizers::NotFinite::SKIP});
                      }},
        OptimizerCase{"OfTheProgram", [] { return OwnOptimizer(); }},
        OptimizerCase{"SparseAdam", [] { return optimizers::Adam({.learning_rate = 0.01}); }, true},
        OptimizerCase{"Constrained", [] { return optimizers::Adam({.learning_rate = 0.01}); }, false,
             constraints::MaxNorm(0.2, {0})},
        OptimizerCase{"SparseConstrained", [] { return optimizers::SGD({.learning_rate = 0.1}); },
             true, constraints::MaxNorm(0.05, {1})},
        OptimizerCase{"SparseSGD", [] { return optimizers::SGD({.learning_rate = 0.1}); }, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cohort::keras
