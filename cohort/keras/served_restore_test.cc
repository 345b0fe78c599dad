// Saved models and optimizers that are restored into variables that ps tasks keep.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/data/testing_files.h"
#include "cohort/keras/testing_served.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::TestingCluster;
using distribute::partitioners::FixedShardsPartitioner;

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

TEST_F(ServedModelFiles, TheOptimizerOfWeightsWaitsForCompile) {
  const Tensor ids = at::tensor({3, 97, 50, 3}, int64).reshape({2, 2});
  const Tensor labels = at::ones({2, 1});
  const auto make_model = [] {
    return Sequential(
        {layers::Embedding(100, 4), layers::GlobalAveragePooling1D(), layers::Dense(1)});
  };
  const auto compile = [](const ModelHandle& model, double learning_rate) {
    model.compile({.optimizer = optimizers::Adam({.learning_rate = learning_rate}), .loss = "mse"});
  };
  const Sequential alone = make_model();
  compile(alone, 0.125);
  alone.train_on_batch(ids, labels);
  alone.save_weights(directory + "/weights");
  alone.train_on_batch(ids, labels);

  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  const auto scope = strategy.scope();
  const Sequential served = make_model();
  served.load_weights(directory + "/weights");
  compile(served, 1);
  EXPECT_EQ(served.optimizer().iterations().value().item<int64_t>(), 1);
  EXPECT_EQ(served.optimizer().learning_rate(), 0.125);
  served.train_on_batch(ids, labels);
  expect_equal(values(served.trainable_variables()), values(alone.trainable_variables()));
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

}  // namespace
}  // namespace cohort::keras
