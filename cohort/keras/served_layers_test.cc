// Layers, optimizers and modules whose variables ps tasks keep train as alone.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <iterator>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/exponential_moving_average.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/testing_served.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/variables/served_variable.h"
#include "cohort/parameter_server/variables/sharded_variable.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::ParameterServerStrategyOptions;
using distribute::TestingCluster;

// Trained on one worker, in shards, it is what it is without a strategy.
void expect_trains_as_alone(
    const std::function<optimizers::Optimizer()>& make,
    const distribute::ParameterServerStrategyOptions& options = kTwoShards) {
  const Text alone(make());
  const auto start = values(alone.model.trainable_variables());
  for (int i = 0; i < 4; ++i) alone.step();

  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), options);
  auto scope = strategy.scope();
  const Text served(make());
  scope.close();
  expect_equal(values(served.model.trainable_variables()), start);
  run_on_worker(strategy, 4, [&] { served.step(); });
  expect_equal(values(served.model.trainable_variables()),
               values(alone.model.trainable_variables()));
}

TEST(ServedLayers, AnEmbeddingTrainsAsAlone) {
  expect_trains_as_alone([] { return optimizers::SGD({.learning_rate = 0.1}); });
  expect_trains_as_alone([] { return optimizers::Adam({.learning_rate = 0.1}); });
}

// Dense and in rows; what they do to gradients and weights, too.
TEST(ServedLayers, EveryOptimizerTrainsAsAlone) {
  using optimizers::Optimizer;
  const std::function<Optimizer()> all[] = {
      [] { return optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}); },
      [] { return optimizers::Adam({.learning_rate = 0.1, .amsgrad = true}); },
      [] { return optimizers::AdamW({.learning_rate = 0.1, .weight_decay = 0.01}); },
      [] { return optimizers::RMSprop({.learning_rate = 0.1, .momentum = 0.5, .centered = true}); },
      [] { return optimizers::Adagrad({.learning_rate = 0.1}); },
      [] { return optimizers::Adadelta({.learning_rate = 0.1}); },
      [] { return optimizers::Adamax({.learning_rate = 0.1}); },
      [] { return optimizers::Lion({.learning_rate = 0.1}); },
      [] { return optimizers::Nadam({.learning_rate = 0.1}); },
      [] { return optimizers::Ftrl({.learning_rate = 0.1}); },
      [] { return optimizers::SGD({.learning_rate = 0.1, .clipvalue = 0.01}); },
  };
  for (size_t i = 0; i < std::size(all); ++i) {
    SCOPED_TRACE(i);
    expect_trains_as_alone(all[i]);
  }
}

TEST(ServedLayers, DecayForThoseThatAreNotExcludedAlone) {
  expect_trains_as_alone([] {
    const optimizers::AdamW adam({.learning_rate = 0.1, .weight_decay = 0.1});
    adam.exclude_from_weight_decay({}, {"embeddings", "bias"});
    return adam;
  });
}

// Its formula is one of whole variables, each with its factors beside it.
TEST(ServedLayers, OfAdafactorTrainAsAloneUnlessTheyLieInShards) {
  expect_trains_as_alone(
      [] { return optimizers::Adafactor({.learning_rate = 0.1, .weight_decay = 0.01}); }, {});
  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  auto scope = strategy.scope();
  const Text served(optimizers::Adafactor(0.1));
  scope.close();
  EXPECT_THAT(
      thrown<UnimplementedError>([&] { run_on_worker(strategy, 1, [&] { served.step(); }); }),
      ::testing::HasSubstr("lies in 2 shards"));
}

// The coordinator makes the averages before the first step, where the variables are.
TEST(ServedLayers, HaveMovingAverages) {
  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  auto scope = strategy.scope();
  const Variable table(at::zeros({4, 2}), {.name = "table"});
  const train::ExponentialMovingAverage ema(0.75);
  ema.apply({table});
  scope.close();
  run_on_worker(strategy, 2, [&] {
    table.assign_add(at::ones({4, 2}));
    ema.apply({table});
  });
  const Variable average = *ema.average(table);
  EXPECT_EQ(average.shards().size(), 2u);
  // 0.25 * 1, then 0.25 * 0.75 * 1 + 0.25 * 2
  expect_equal({average.value().detach()}, {at::full({4, 2}, 0.6875)});
  ema.swap_weights({table});
  expect_equal({table.value().detach()}, {at::full({4, 2}, 0.6875)});
}

TEST(ServedLayers, OfMixedPrecisionTrainAsAlone) {
  mixed_precision::set_global_policy("mixed_bfloat16");
  expect_trains_as_alone([] { return optimizers::Adam({.learning_rate = 0.1}); });
  mixed_precision::set_global_policy(std::nullopt);
}

TEST(ServedLayers, HaveNoLossScale) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  EXPECT_THROW(mixed_precision::LossScaleOptimizer(optimizers::SGD(0.1)), InvalidArgumentError);
}

TEST(ServedLayers, LearningRatesFollowTheirSchedule) {
  expect_trains_as_alone([] {
    return optimizers::SGD(
        {.learning_rate = optimizers::schedules::ExponentialDecay(
             {.initial_learning_rate = 0.5, .decay_steps = 1, .decay_rate = 0.5})});
  });
}

TEST(ServedLayers, AnEmbeddingPullsTheRowsOfABatchAlone) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  auto scope = strategy.scope();
  const Text served(optimizers::SGD({.learning_rate = 0.1}));
  scope.close();
  const auto& store = strategy.parameter_server_core()->variables()->store();
  const std::vector<internal::VariableStore::Load> before = {store.load(0), store.load(1)};
  run_on_worker(strategy, 3, [&] { served.step(); });
  const std::vector<internal::VariableStore::Load> after = {store.load(0), store.load(1)};
  // Of the ids 3, 50, 51 and 97 each step reads each once; the dense layer's two variables are read
  // whole, and nothing else is.
  const auto shards = served.model.trainable_variables()[0].shards();
  ASSERT_EQ(shards.size(), 2u);
  const size_t first = shards[0].device().find("task:0") == std::string::npos ? 1 : 0;
  EXPECT_EQ(after[first].rows_read - before[first].rows_read, 3 * 1);
  EXPECT_EQ(after[1 - first].rows_read - before[1 - first].rows_read, 3 * 3);
  int64_t bytes = 0;
  for (size_t ps = 0; ps < 2; ++ps) bytes += after[ps].bytes_read - before[ps].bytes_read;
  EXPECT_LT(bytes, 100 * 4 * 4);
}

TEST(ServedLayers, SeveralReplicasOfAWorkerAreOne) {
  const distribute::LogicalCpus cpus(2);
  TestingCluster cluster(1, 2);
  ParameterServerStrategyOptions options = kTwoShards;
  options.worker_devices = {"CPU:0", "CPU:1"};
  const ParameterServerStrategy strategy(cluster.resolver(), options);
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  auto scope = strategy.scope();
  const Variable sum(at::zeros({3, 1}), {.name = "sum", .aggregation = VariableAggregation::SUM});
  const Variable none(0., {.name = "none"});
  const Text served(optimizers::SGD({.learning_rate = 0.05}));
  scope.close();
  run_on_worker(strategy, 2, [&](distribute::ReplicaContext& replica) {
    const auto id = static_cast<double>(replica.replica_id_in_sync_group());
    sum.assign_add(at::full({3, 1}, 1 + id));
    sum.scatter_add({.values = at::full({1, 1}, 10.f),
                     .indices = at::full({1}, replica.replica_id_in_sync_group(), int64)});
    if (sum.sparse_read(at::zeros({1}, int64)).item<float>() < 13) throw InternalError("not read");
    served.step();
  });
  EXPECT_TRUE(at::equal(sum.value().flatten(), at::tensor({26.f, 26.f, 6.f})));
  // Two replicas with the same batch are one with twice the gradient.
  const Text alone(optimizers::SGD({.learning_rate = 0.1}));
  for (int i = 0; i < 2; ++i) alone.step();
  expect_equal(values(served.model.trainable_variables()),
               values(alone.model.trainable_variables()));
  EXPECT_THROW(run_on_worker(
                   strategy, 1, [&] { none.assign(1.); }, "none"),
               InvalidArgumentError);
}

// What another worker adds between this one's pull and its push is not lost.
TEST(ServedLayers, MovingStatisticsTakeWhatEveryWorkerAdds) {
  const Tensor x = at::arange(8, float32).reshape({4, 2});
  const layers::BatchNormalization alone({.momentum = 0.75});
  alone(x, {.training = true});
  const auto expected = values(alone.non_trainable_variables());

  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const layers::BatchNormalization served({.momentum = 0.75});
  served(x);
  scope.close();
  const Variable mean = served.non_trainable_variables()[0];
  run_on_worker(strategy, 1, [&] {
    mean.value();  // this step's
    std::dynamic_pointer_cast<internal::ServedVariable>(mean.impl_ptr())
        ->assign_shard(0, internal::AssignOp::kAdd, at::full({2}, 1.f));
    served(x, {.training = true});
  });
  expect_equal({mean.value() - 1, served.non_trainable_variables()[1].value()}, expected);
}

struct NormedImpl : torch::nn::Module {
  NormedImpl()
      : linear(register_module("linear", torch::nn::Linear(2, 3))),
        norm(register_module("norm", torch::nn::BatchNorm1d(3))) {
    const at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) {
      parameter.copy_(at::arange(parameter.numel(), float32).reshape(parameter.sizes()) / 7);
    }
  }
  Tensor forward(const Tensor& x) { return norm(linear(x)); }
  torch::nn::Linear linear;
  torch::nn::BatchNorm1d norm;
};
TORCH_MODULE(Normed);

struct Module {
  Module() : model([] { return Normed(); }), optimizer({.learning_rate = 0.1}) {
    optimizer.build(model.trainable_variables());
  }
  void step() const {
    const Tensor x = at::tensor({1.f, 2.f, -3.f, 0.5f, 2.f, 2.f}).reshape({3, 2});
    GradientTape tape;
    const Tensor y = model(x, {.training = true});
    optimizer.minimize((y * y * x.sum(1, true)).sum(), model.trainable_variables(), tape);
  }
  TorchModel model;
  optimizers::SGD optimizer;
};

TEST(ServedLayers, ATorchModelTrainsAsAlone) {
  const Module alone;
  for (int i = 0; i < 3; ++i) alone.step();

  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  auto scope = strategy.scope();
  const Module served;
  scope.close();
  run_on_worker(strategy, 3, [&] { served.step(); });
  expect_equal(values(served.model.weights()), values(alone.model.weights()));
  // On the coordinator it computes with the ps tasks' values.
  const Tensor x = at::ones({2, 2});
  EXPECT_TRUE(at::allclose(served.model(x), alone.model(x)));
}

}  // namespace
}  // namespace cohort::keras
