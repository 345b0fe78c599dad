// Layers, optimizers and modules whose variables ps tasks keep.
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

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/parameter_server/coordinator/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::ParameterServerStrategyOptions;
using distribute::ShardedVariable;
using distribute::Strategy;
using distribute::TestingCluster;
using distribute::coordinator::ClusterCoordinator;
using distribute::partitioners::FixedShardsPartitioner;

const ParameterServerStrategyOptions kTwoShards{.variable_partitioner = FixedShardsPartitioner(2)};

// Runs fn on a worker `times` times, one after another.
template <class Fn>
void run_on_worker(const ParameterServerStrategy& strategy, int times, Fn fn,
                   const std::string& name = "step") {
  const auto function = strategy.function(name, [&strategy, fn] { strategy.run(fn); });
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < times; ++i) {
    coordinator.schedule(function);
    coordinator.join();
  }
}

// An embedding of 100 rows, its mean, and a dense layer.
struct Text {
  explicit Text(const optimizers::Optimizer& optimizer)
      : model({layers::Embedding(
                   100, 4, {.embeddings_initializer = initializers::RandomUniform({.seed = 1})}),
               layers::GlobalAveragePooling1D(),
               layers::Dense(1, {.kernel_initializer = initializers::GlorotUniform({.seed = 2})})}),
        optimizer(optimizer) {
    model(at::zeros({1, 3}, int64));
    this->optimizer.build(model.trainable_variables());
  }

  void step() const {
    const Tensor ids = at::tensor({3, 97, 3, 50, 3, 51}, int64).reshape({2, 3});
    GradientTape tape;
    const Tensor error = model(ids, {.training = true}) - 1;
    optimizer.minimize((error * error).sum(), model.trainable_variables(), tape);
  }

  Sequential model;
  optimizers::Optimizer optimizer;
};

std::vector<Tensor> values(const std::vector<Variable>& variables) {
  std::vector<Tensor> all;
  for (const Variable& variable : variables) all.push_back(variable.value().detach().clone());
  return all;
}

void expect_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-6, 1e-7)) << "variable " << i;
  }
}

// Trained on one worker, in shards, it is what it is without a strategy.
void expect_trains_as_alone(const std::function<optimizers::Optimizer()>& make) {
  const Text alone(make());
  const auto start = values(alone.model.trainable_variables());
  for (int i = 0; i < 4; ++i) alone.step();

  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
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
      [] { return optimizers::Nadam({.learning_rate = 0.1}); },
      [] { return optimizers::Ftrl({.learning_rate = 0.1}); },
      [] { return optimizers::SGD({.learning_rate = 0.1, .clipvalue = 0.01}); },
  };
  for (size_t i = 0; i < std::size(all); ++i) {
    SCOPED_TRACE(i);
    expect_trains_as_alone(all[i]);
  }
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
  const auto& store = strategy.parameter_server_core()->store();
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

TEST(ServedLayers, AMetricIsReadAsItIsAtOneMomentWhileStepsGoOn) {
  const TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const metrics::Mean mean("mean");
  scope.close();
  const std::vector<Variable> sums = mean.variables();
  EXPECT_EQ(sums[0].device(), sums[1].device());
  const auto function =
      strategy.function("step", [&] { strategy.run([&] { mean.update_state(7.0); }); });
  const ClusterCoordinator coordinator(strategy);
  int torn = 0;
  for (int i = 0; i < 300; ++i) {
    coordinator.schedule(function);
    const double now = mean.result();
    torn += now != 0 && now != 7 ? 1 : 0;
  }
  coordinator.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(mean.result().number(), 7);
  EXPECT_EQ(sums[1].value().item<double>(), 300);
}

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

// A set of them is as large as the model.
TEST(ServedLayers, NoGradientsAreKeptBetweenSteps) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::zeros({3}));
  const optimizers::SGD sgd({.learning_rate = 1});
  sgd.build({w});
  scope.close();
  const Tensor gradient = at::ones({3});
  const size_t before = gradient.storage().use_count();
  run_on_worker(strategy, 2, [&] { sgd.apply_gradients({{gradient, w}}); });
  EXPECT_EQ(gradient.storage().use_count(), before);
  EXPECT_TRUE(at::equal(w.value(), at::full({3}, -2.f)));
}

// Two workers take gradients by the same values: one update comes after the other.
void expect_staleness_of_two_steps(const std::function<Tensor(const Variable&)>& read) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::ones({3}), {.name = "w"});
  const optimizers::SGD optimizer({.learning_rate = 0.5});
  optimizer.build({w});
  scope.close();
  distribute::Gate gate;
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  EXPECT_EQ(coordinator.mean_staleness(), 0);
  for (int i = 0; i < 2; ++i) {
    coordinator.schedule([&] {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = read(w).sum();
        gate.pass();
        optimizer.minimize(loss, {w}, tape);
      });
    });
  }
  ASSERT_TRUE(gate.wait_for(2));
  gate.open();
  coordinator.join();
  EXPECT_EQ(coordinator.mean_staleness(), 0.5);
  EXPECT_TRUE(at::equal(w.value(), at::zeros({3})));
}

// Each worker updates with the gradients of its own calls, whatever others do meanwhile.
TEST(ServedLayers, GradientsAreAccumulatedByEachWorker) {
  const TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable w(at::zeros({2}));
  const Variable table(at::zeros({10, 2}));
  const optimizers::SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 3});
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  for (int call = 1; call <= 6; ++call) {
    distribute::Gate gate;
    for (int worker = 0; worker < 2; ++worker) {
      coordinator.schedule([&] {
        strategy.run([&] {
          GradientTape tape;
          const Tensor rows = table.sparse_read(at::tensor({call, 0}, int64));
          const Tensor loss = (w.value() * static_cast<double>(call)).sum() + rows.sum();
          gate.pass();  // both have read what there was
          sgd.minimize(loss, {w, table}, tape);
        });
      });
    }
    ASSERT_TRUE(gate.wait_for(2));
    gate.open();
    coordinator.join();
    EXPECT_EQ(sgd.iterations().value().item<int64_t>(), call / 3 * 2);
  }
  // Means of 1, 2, 3 and of 4, 5, 6, of two workers.
  EXPECT_TRUE(at::equal(w.value(), at::full({2}, -2.0 * (2 + 5))));
  Tensor rows = at::zeros({10, 2});
  rows.narrow(0, 1, 6).fill_(-2.0 / 3);
  rows[0].fill_(-4.0);
  EXPECT_TRUE(at::allclose(table.value(), rows));
}

TEST(ServedLayers, TheMeanStalenessIsThatOfTheGradients) {
  expect_staleness_of_two_steps([](const Variable& w) { return w.value(); });
}

TEST(ServedLayers, RowsHaveTheStalenessOfTheirLookup) {
  expect_staleness_of_two_steps(
      [](const Variable& w) { return w.sparse_read(at::arange(3, int64)); });
}

// A model that was trained without a strategy, saved, and restored before it is built.
class ServedModelFiles : public data::FilesTest {};

// It is a variable there, and a number in other programs.
TEST_F(ServedModelFiles, ALearningRateIsRestoredAndUsedByWorkers) {
  const Variable alone(at::zeros({3}));
  const optimizers::SGD of_alone({.learning_rate = 0.125});
  of_alone.build({alone});
  train::Checkpoint({{"optimizer", of_alone}}).write(directory + "/alone");

  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::zeros({3}));
  const optimizers::SGD sgd({.learning_rate = 1});
  sgd.build({w});
  scope.close();
  const train::Checkpoint checkpoint({{"optimizer", sgd}});
  checkpoint.read(directory + "/alone").assert_consumed();
  EXPECT_EQ(sgd.learning_rate(), 0.125);
  run_on_worker(strategy, 1, [&] { sgd.apply_gradients({{at::ones({3}), w}}); });
  EXPECT_TRUE(at::equal(w.value(), at::full({3}, -0.125f)));

  sgd.set_learning_rate(0.5);
  checkpoint.write(directory + "/served");
  train::Checkpoint({{"optimizer", of_alone}}).read(directory + "/served").assert_consumed();
  EXPECT_EQ(of_alone.learning_rate(), 0.5);
}

TEST_F(ServedModelFiles, ASavedModelIsDividedAsItIsLoaded) {
  const Tensor ids = at::tensor({3, 97, 50}, int64).reshape({1, 3});
  const std::string path = directory + "/model";
  const Sequential alone(
      {layers::Embedding(100, 4), layers::GlobalAveragePooling1D(), layers::Dense(1)});
  const Tensor expected = alone(ids);
  alone.save(path);
  TestingCluster cluster(1, 2);
  for (const int shards : {2, 3}) {
    const ParameterServerStrategy strategy(
        cluster.resolver(), {.variable_partitioner = FixedShardsPartitioner(shards)});
    const auto scope = strategy.scope();
    const auto served = models::load_model(path);
    const auto variables = served.trainable_variables();
    EXPECT_EQ(variables.at(0).shards().size(), static_cast<size_t>(shards));
    expect_equal(values(variables), values(alone.trainable_variables()));
    EXPECT_TRUE(at::allclose(served(ids), expected));
  }
}

class RestoredBeforeItIsBuilt : public data::FilesTest {
 protected:
  RestoredBeforeItIsBuilt() {
    const Text saved(optimizers::Adam({.learning_rate = 0.1}));
    for (int i = 0; i < 3; ++i) saved.step();
    saved_ = values(saved.model.trainable_variables());
    prefix_ = train::Checkpoint({{"model", saved.model}, {"optimizer", saved.optimizer}})
                  .write(directory + "/ckpt");
    saved.step();
    one_step_later_ = values(saved.model.trainable_variables());
  }

  struct Served {
    Sequential model{layers::Embedding(100, 4), layers::GlobalAveragePooling1D(), layers::Dense(1)};
    optimizers::Optimizer optimizer = optimizers::Adam({.learning_rate = 0.1});
    std::optional<train::LoadStatus> status;
  };
  Served restore() const {
    const auto scope = strategy_.scope();
    Served served;
    served.status =
        train::Checkpoint({{"model", served.model}, {"optimizer", served.optimizer}}).read(prefix_);
    return served;
  }
  void build(const Served& served) const {
    const auto scope = strategy_.scope();
    served.model(at::zeros({1, 3}, int64));
    served.optimizer.build(served.model.trainable_variables());
  }
  void expect_goes_on(const Served& served) const {
    expect_equal(values(served.model.trainable_variables()), saved_);
    served.status->assert_consumed();
    run_on_worker(strategy_, 1, [&] {
      const Tensor ids = at::tensor({3, 97, 3, 50, 3, 51}, int64).reshape({2, 3});
      GradientTape tape;
      const Tensor error = served.model(ids, {.training = true}) - 1;
      served.optimizer.minimize((error * error).sum(), served.model.trainable_variables(), tape);
    });
    expect_equal(values(served.model.trainable_variables()), one_step_later_);  // slots, too
  }

  TestingCluster cluster_{1, 2};
  ParameterServerStrategy strategy_{cluster_.resolver(), kTwoShards};
  std::vector<Tensor> saved_, one_step_later_;
  std::string prefix_;
};

TEST_F(RestoredBeforeItIsBuilt, ItGoesOnWithItsWeightsAndSlots) {
  const Served served = restore();
  build(served);
  EXPECT_EQ(served.model.trainable_variables()[0].shards().size(), 2u);
  expect_goes_on(served);
}

TEST_F(RestoredBeforeItIsBuilt, EachPsTaskReadsItsShardsItself) {
  const Served served = restore();
  const std::string data = prefix_ + ".data-00000-of-00001";
  // The object graph, at the end, stays.
  const auto size = static_cast<size_t>(std::filesystem::file_size(data)) / 2;
  std::fstream(data, std::ios::in | std::ios::out | std::ios::binary) << std::string(size, 'x');
  try {
    build(served);
    FAIL() << "damaged values were taken";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("checksum"));
    EXPECT_THAT(internal::record_error(std::current_exception()).task,
                ::testing::StartsWith("/job:ps/"));
  }
}

// The coordinator has its files open.
TEST_F(RestoredBeforeItIsBuilt, OfACheckpointThatIsGoneTheCoordinatorReadsIt) {
  const Served served = restore();
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::filesystem::remove(file.path());
  }
  build(served);
  expect_goes_on(served);
}

// ps tasks read files for the coordinator alone.
TEST_F(RestoredBeforeItIsBuilt, InAStepTheWorkerReadsIt) {
  const Served served = restore();
  run_on_worker(strategy_, 1, [&] { served.model(at::zeros({1, 3}, int64)); });
  expect_equal(values(served.model.trainable_variables()), saved_);
}

// TensorFlow's test_keras_metrics: by the coordinator, between steps.
TEST(ServedLayers, MetricsCountBetweenSteps) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  const auto scope = strategy.scope();
  const metrics::FalsePositives positives({.thresholds = {0.2, 0.5, 0.7, 0.8}});
  const metrics::AUC auc({.num_thresholds = 10});
  positives.update_state(at::tensor({0.0, 1.0, 0.0, 0.0}), at::tensor({0.0, 0.0, 0.3, 0.9}));
  auc.update_state(at::tensor({0, 0, 1, 1}), at::tensor({0.0, 0.5, 0.3, 0.9}));
  EXPECT_TRUE(at::equal(positives.result().to(float64), at::tensor({2.0, 1.0, 1.0, 1.0}, float64)));
  EXPECT_EQ(auc.result().number(), 0.75);
  positives.reset_state();
  auc.reset_state();
  EXPECT_TRUE(at::equal(positives.result().to(float64), at::zeros({4}, float64)));
  EXPECT_EQ(auc.result().number(), 0);
}

}  // namespace
}  // namespace cohort::keras
