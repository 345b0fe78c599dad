// Training that was saved, and goes on in fresh objects: promise P4, to the bit.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/keras/testing_training.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using internal::SimulatedFileSystem;
using optimizers::Optimizer;

struct Trial {
  int replicas = 2;
  std::string optimizer = "adam";
  bool dropout = true;
  DType dtype = float32;
  distribute::Storage storage = distribute::Storage::kShared;
};

Optimizer make_optimizer(const std::string& name) {
  if (name == "sgd") return optimizers::SGD({.learning_rate = 0.1});
  if (name == "momentum") return optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9});
  if (name == "rmsprop") {
    return optimizers::RMSprop({.learning_rate = 0.01, .momentum = 0.9, .centered = true});
  }
  if (name == "schedule") {
    return optimizers::Adam(
        {.learning_rate = optim::ExponentialDecay(
             {.initial_learning_rate = 0.02, .decay_steps = 3, .decay_rate = 0.5})});
  }
  return optimizers::Adam({.learning_rate = 0.01});
}

// A program from its start: model, optimizer, metric, input, random numbers.
struct Program {
  Program(const Trial& setup, SimulatedFileSystem& files)
      : strategy(distribute::with_storage(setup.storage, setup.replicas)) {
    random::set_seed(static_cast<uint64_t>(files.calls()) + 17);  // another at each start
    auto scope = strategy.scope();
    std::vector<layers::LayerHandle> parts = {
        layers::Conv2D(4, 3, {.activation = "relu", .dtype = setup.dtype}), layers::Flatten()};
    if (setup.dropout) parts.push_back(layers::Dropout(0.3));
    parts.push_back(layers::Dense(3, {.dtype = setup.dtype}));
    model.emplace(Sequential(parts));
    optimizer.emplace(make_optimizer(setup.optimizer));
    accuracy.emplace(metrics::SparseCategoricalAccuracy());
    scope.close();
    const LabelledImages all = make_images(40, setup.dtype);
    const auto dataset = data::Dataset::from_tensor_slices(tuple(all.images, all.labels))
                             .shuffle(40, {.seed = 9})
                             .repeat()
                             .batch(7);
    input.emplace(strategy.experimental_distribute_dataset(dataset).iterator());
    checkpoint.emplace(std::vector<train::NamedObject>{{"model", *model},
                                                       {"optimizer", *optimizer},
                                                       {"accuracy", *accuracy},
                                                       {"input", *input},
                                                       {"random", strategy}});
    internal::use_file_system(*checkpoint, files);
  }

  std::vector<double> train(int steps) {
    const losses::SparseCategoricalCrossentropy loss_object(
        {.from_logits = true, .reduction = losses::Reduction::NONE});
    const auto step = [&](const Tensor& images, const Tensor& labels) {
      GradientTape tape;
      const Tensor logits = (*model)(images, {.training = true});
      const Tensor loss =
          nn::compute_average_loss(loss_object(labels, logits), {.global_batch_size = 7});
      const auto variables = model->trainable_variables();
      optimizer->apply_gradients(zip(tape.gradient(loss, variables), variables));
      accuracy->update_state(labels, logits);
      return loss;
    };
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      const auto results = strategy.run(step, input->get_next());
      losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, results).item<double>());
    }
    return losses;
  }

  // Everything that a checkpoint holds, as it would be saved.
  std::vector<Tensor> values() {
    std::vector<Tensor> all;
    for (const Variable& variable : model->variables()) all.push_back(variable.value().clone());
    for (const Variable& variable : optimizer->variables()) {
      all.push_back(variable.value().clone());
    }
    for (const Variable& variable : accuracy->variables()) all.push_back(variable.value().clone());
    return all;
  }

  distribute::Strategy strategy;
  std::optional<Sequential> model;
  std::optional<Optimizer> optimizer;
  std::optional<metrics::SparseCategoricalAccuracy> accuracy;
  std::optional<distribute::DistributedIterator> input;
  std::optional<train::Checkpoint> checkpoint;
};

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << "value " << i;
}

class ResumeTest : public testing::TestWithParam<Trial> {};

TEST_P(ResumeTest, GoesOnAsIfNothingHadHappened) {
  SimulatedFileSystem files;
  Program whole(GetParam(), files);
  whole.train(4);
  whole.checkpoint->save("dir/ckpt");
  const std::vector<double> expected = whole.train(4);

  // Restored before anything is built: values come as layers and slots are made, in a step.
  Program resumed(GetParam(), files);
  const auto status = resumed.checkpoint->restore("dir/ckpt-1");
  status.assert_existing_objects_matched();
  EXPECT_EQ(resumed.train(4), expected);
  status.assert_consumed();
  expect_same(resumed.values(), whole.values());

  // Restored into a program that has trained on something else.
  Program used(GetParam(), files);
  used.train(3);
  used.checkpoint->restore("dir/ckpt-1").assert_consumed();
  EXPECT_EQ(used.train(4), expected);
  expect_same(used.values(), whole.values());
}

INSTANTIATE_TEST_SUITE_P(Programs, ResumeTest,
                         testing::Values(Trial{.replicas = 1}, Trial{.replicas = 2},
                                         Trial{.replicas = 4}, Trial{.replicas = 5},
                                         Trial{.optimizer = "sgd"}, Trial{.optimizer = "momentum"},
                                         Trial{.optimizer = "rmsprop"},
                                         Trial{.optimizer = "schedule"},
                                         Trial{.storage = distribute::Storage::kCentral}));

// Weights, slots, metrics, random numbers and the input's position are saved the same way.
TEST(Resume, SavedUnderCentralStorageItGoesOnMirroredAndBack) {
  using distribute::Storage;
  for (const Storage saved : {Storage::kCentral, Storage::kPerReplica}) {
    const Storage resumed = saved == Storage::kCentral ? Storage::kPerReplica : Storage::kCentral;
    SimulatedFileSystem files;
    Program whole({.storage = saved}, files);
    whole.train(3);
    whole.checkpoint->save("dir/ckpt");
    const std::vector<double> expected = whole.train(3);
    Program other({.storage = resumed}, files);
    const auto status = other.checkpoint->restore("dir/ckpt-1");
    EXPECT_EQ(other.train(3), expected);
    status.assert_consumed();
    expect_same(other.values(), whole.values());
  }
}

TEST(Resume, SavedUnderFourReplicasItGoesOnUnderAnyNumber) {
  Trial setup{.replicas = 4, .dropout = false, .dtype = float64};
  SimulatedFileSystem files;
  std::vector<double> expected;
  {
    Program whole(setup, files);
    whole.train(4);
    whole.checkpoint->save("dir/ckpt");
    expected = whole.train(4);
  }
  for (const int replicas : {1, 2, 5}) {
    setup.replicas = replicas;
    Program resumed(setup, files);
    resumed.checkpoint->restore("dir/ckpt-1").expect_partial();
    const std::vector<double> losses = resumed.train(4);
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], 1e-9) << replicas << " replicas, step " << i;
    }
  }
}

TEST(Resume, SavedUnderAStrategyItPredictsTheSameWithoutOne) {
  const Trial setup{.replicas = 4};
  SimulatedFileSystem files;
  const Tensor images = make_images(9, float32).images;
  Tensor expected;
  {
    Program program(setup, files);
    program.train(3);
    program.checkpoint->save("dir/ckpt");
    expected = (*program.model)(images);
  }
  const Sequential model({layers::Conv2D(4, 3, {.activation = "relu"}), layers::Flatten(),
                          layers::Dropout(0.3), layers::Dense(3)});
  train::Checkpoint checkpoint({{"model", model}});
  internal::use_file_system(checkpoint, files);
  checkpoint.restore("dir/ckpt-1").expect_partial();
  EXPECT_TRUE(model(images).equal(expected));
}

TEST(Resume, DropoutWithASeedOfItsOwnGoesOn) {
  SimulatedFileSystem files;
  const Tensor ones = at::ones({50});
  const auto make = [&](const layers::LayerHandle& layer) {
    train::Checkpoint checkpoint({{"dropout", layer}});
    internal::use_file_system(checkpoint, files);
    return checkpoint;
  };
  const layers::LayerHandle first = layers::Dropout(0.5, {.seed = 4});
  first(ones, {.training = true});
  make(first).write("dir/ckpt");
  const Tensor expected = first(ones, {.training = true});
  const layers::LayerHandle second = layers::Dropout(0.5, {.seed = 4});
  make(second).read("dir/ckpt");
  EXPECT_TRUE(second(ones, {.training = true}).equal(expected));
}

}  // namespace
}  // namespace cohort::keras
