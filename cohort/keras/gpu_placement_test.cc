// What is made under a strategy of simulated GPUs lies where it is needed.
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/version.h>

#include "cohort/core/structure/device.h"
#include "cohort/core/testing_folder.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/central_storage_strategy.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"
#include "cohort/testing/device/gpu_and_cpu.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::MirroredStrategy;
using distribute::OneDeviceStrategy;
using distribute::ReplicaContext;

class GpuPlacementTest : public ::testing::Test {
 protected:
  const testing::SimulatedGpus gpus_{2};
};

bool on_gpu(const Tensor& tensor, int index = 0) {
  const c10::Device gpu = internal::torch_device(internal::str("GPU:", index));
  return tensor.device().type() == gpu.type() && (gpu.is_cpu() || tensor.device() == gpu);
}

TEST_F(GpuPlacementTest, TensorsThatAStepMakesAreOnItsDevice) {
  const MirroredStrategy strategy;
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  strategy.run([&](ReplicaContext& context) {
    const int own = context.replica_id_in_sync_group();
    for (const Tensor& made :
         {zeros({2}), ones({2}), constant({1.f, 2.f}), fill({2}, 3), eye(2), range(4),
          linspace(0, 1, 3), random::normal({2}), random::uniform({2})}) {
      EXPECT_TRUE(on_gpu(made, own)) << made.device();
    }
    return zeros({});
  });
  EXPECT_TRUE(zeros({2}).is_cpu());
}

TEST_F(GpuPlacementTest, RandomNumbersAreThoseOfTheCpu) {
  const auto drawn = [](const std::string& device) {
    random::set_seed(5);
    const OneDeviceStrategy strategy(device);
    return strategy.run([](ReplicaContext&) { return random::normal({4, 3}); }).value(0);
  };
  EXPECT_TRUE(at::equal(drawn("GPU:0").cpu(), drawn("CPU:0")));
}

TEST_F(GpuPlacementTest, VariablesMeetConstantsInAStep) {
  const MirroredStrategy strategy;
  const auto scope = strategy.scope();
  const Variable variable(at::ones({2}));
  const auto products = strategy.run([&](ReplicaContext&) {
    return variable.value() * constant({2.f, 3.f}) + ones({2});
  });
  EXPECT_TRUE(at::equal(products.value(1).cpu(), at::tensor({3.f, 4.f})));
  EXPECT_TRUE(on_gpu(products.value(1), 1));
  variable.assign_add(at::ones({2}));
  EXPECT_TRUE(at::equal(variable.components().value(1).cpu(), at::full({2}, 2.f)));
}

TEST_F(GpuPlacementTest, ALayerOfAStrategyIsBuiltOutsideOfItsScope) {
  const layers::LayerHandle layer = [] {
    const OneDeviceStrategy strategy("GPU:1");
    const auto scope = strategy.scope();
    return layers::Dense(2);
  }();
  EXPECT_TRUE(on_gpu(layer(at::ones({3, 4})), 1));
  EXPECT_TRUE(on_gpu(layer(at::ones({3, 4})), 1));
}

TEST_F(GpuPlacementTest, AModelTakesHostTensorsBetweenSteps) {
  const OneDeviceStrategy strategy("GPU:0");
  const Tensor x = at::randn({3, 4});
  const auto model = [&] {
    const auto scope = strategy.scope();
    const Sequential made({layers::Dense(2)});
    made(x);
    return made;
  }();
  const Tensor outputs = model(x);
  EXPECT_TRUE(on_gpu(outputs));
  EXPECT_EQ(outputs.size(1), 2);
}

TEST_F(GpuPlacementTest, ATorchModuleMadeOnTheHostIsTaken) {
#if TORCH_VERSION_MAJOR >= 2
  GTEST_SKIP() << "libtorch 2 moves a module's tensors to devices that it has kernels for";
#endif
  at::manual_seed(2);
  const Tensor x = at::randn({16, 5}), y = at::randn({16, 1});
  expect_same_on_gpu([&](const distribute::Strategy&) {
    at::manual_seed(3);
    const TorchModel model([] {
      return torch::nn::Sequential(torch::nn::Linear(5, 4), torch::nn::BatchNorm1d(4),
                                   torch::nn::Linear(4, 1));
    });
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-2}), .loss = "mse"});
    model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0, .shuffle = false});
    return values_of(model.weights());
  });
}

TEST_F(GpuPlacementTest, BatchesAreOnTheReplicasDevices) {
  const MirroredStrategy strategy;
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(tuple(at::arange(8.), at::rand({8, 3}))).batch(4));
  double total = 0;
  for (const auto& batch : dataset) {
    for (int replica = 0; replica < 2; ++replica) {
      const Tensor numbers = batch.value(replica)[0].tensor();
      EXPECT_TRUE(on_gpu(numbers, replica));
      total += numbers.sum().item<double>();
    }
  }
  EXPECT_EQ(total, 28);
}

TEST_F(GpuPlacementTest, SumsAndGathersOfReplicasOnTwoDevices) {
  const MirroredStrategy strategy;
  const auto sums = strategy.run([](ReplicaContext& context) {
    const Tensor own =
        constant({1.f, 2.f}) * static_cast<double>(context.replica_id_in_sync_group() + 1);
    return Structure(
        tuple(context.all_reduce(distribute::ReduceOp::SUM, own), context.all_gather(own, 0)));
  });
  EXPECT_TRUE(at::equal(sums.value(1)[0].tensor().cpu(), at::tensor({3.f, 6.f})));
  EXPECT_TRUE(at::equal(sums.value(0)[1].tensor().cpu(), at::tensor({1.f, 2.f, 2.f, 4.f})));
}

TEST_F(GpuPlacementTest, CentralStorageKeepsParametersOnTheHost) {
  const distribute::CentralStorageStrategy strategy;
  const auto scope = strategy.scope();
  const Sequential model({layers::Dense(3), layers::Dense(1)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.fit(at::randn({16, 4}), at::randn({16, 1}), {.batch_size = 8, .verbose = 0});
  EXPECT_EQ(model.weights().size(), 4);
}

TEST_F(GpuPlacementTest, CheckpointsGoFromGpuToCpuAndBack) {
  const internal::TemporaryFolder folder;
  const Tensor x = at::ones({4, 3}), y = at::ones({4, 1});
  const auto train = [&](const std::string& device, const std::string& written,
                         const std::string& read) {
    utils::set_random_seed(7);
    const OneDeviceStrategy strategy(device);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(3), layers::Dense(1)});
    const optimizers::Optimizer optimizer = optimizers::Adam({.learning_rate = 0.01});
    model.compile({.optimizer = optimizer, .loss = "mse"});
    const train::Checkpoint checkpoint({{"model", model}, {"optimizer", optimizer}});
    if (!read.empty()) checkpoint.read(read);
    model.fit(x, y, {.batch_size = 2, .epochs = 2, .verbose = 0, .shuffle = false});
    if (!written.empty()) checkpoint.write(written);
    return values_of(model.weights());
  };
  const std::string path = folder / "ckpt";
  train("GPU:0", path, "");
  expect_close({train("CPU:0", "", path), train("GPU:1", "", path)}, 1e-6);
}

TEST_F(GpuPlacementTest, MetricsCountOnTheirDevice) {
  const Tensor labels = at::randint(2, {16}, at::kFloat), scores = at::rand({16});
  expect_same_on_gpu([&](const distribute::Strategy& strategy) {
    const metrics::Mean mean;
    const metrics::AUC auc;
    const metrics::Precision precision;
    const metrics::MeanIoU iou({.num_classes = 2});
    const auto device = internal::torch_device(strategy.extended().worker_devices()[0]);
    const Tensor y = labels.to(device), p = scores.to(device);
    strategy.run([&](ReplicaContext&) {
      mean.update_state(p);
      auc.update_state(y, p);
      precision.update_state(y, p);
      iou.update_state(y, p.ge(0.5).to(at::kFloat));
      return p;
    });
    return std::vector<Tensor>{mean.result(), auc.result(), precision.result(), iou.result()};
  });
}

TEST_F(GpuPlacementTest, AHostAndAGpuTrainTogether) {
  std::vector<std::vector<Tensor>> results;
  const Tensor x = at::randn({16, 4}), y = at::randn({16, 1});
  config::set_logical_device_configuration("CPU", 2);
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"CPU:0", "CPU:1"}, std::vector<std::string>{"CPU:0", "GPU:0"}}) {
    utils::set_random_seed(7);
    const MirroredStrategy strategy(devices);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(3, {.activation = "relu"}), layers::Dense(1)});
    model.compile({.optimizer = "adam", .loss = "mse"});
    model.fit(x, y, {.batch_size = 8, .epochs = 3, .verbose = 0, .shuffle = false});
    results.push_back(values_of(model.weights()));
  }
  expect_close(results, 1e-5);
}

}  // namespace
}  // namespace cohort::keras
