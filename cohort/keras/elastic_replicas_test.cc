// Replicas that tasks host: no bit of a result depends on how many tasks there are.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/testing_training.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using distribute::ReduceOp;
using distribute::Strategy;

// What a program has computed, in every bit.
struct Outcome {
  std::vector<Tensor> values;

  void add(const Tensor& value) { values.push_back(value.detach().clone()); }
};

void expect_same_bits(const Outcome& outcome, const Outcome& other, const std::string& where) {
  ASSERT_EQ(outcome.values.size(), other.values.size()) << where;
  for (size_t i = 0; i < outcome.values.size(); ++i) {
    EXPECT_TRUE(at::equal(outcome.values[i], other.values[i]))
        << where << ", value " << i << ": " << outcome.values[i] << " and " << other.values[i];
  }
}

using Program = std::function<void(const Strategy&, Outcome&)>;

// Runs the program on so many tasks that host `replicas`, and checks that all tasks agree.
Outcome outcome_of(int replicas, int tasks, const Program& program) {
  std::vector<Outcome> outcomes(static_cast<size_t>(tasks));
  random::set_seed(5);
  distribute::run_all_tasks(tasks, 1,
                            [&](const Strategy& strategy, int task) {
                              EXPECT_EQ(strategy.num_replicas_in_sync(), replicas);
                              program(strategy, outcomes[static_cast<size_t>(task)]);
                            },
                            {.elastic_replicas = replicas});
  for (const Outcome& other : outcomes) expect_same_bits(outcomes[0], other, "between tasks");
  return outcomes[0];
}

void expect_same_on_any_tasks(int replicas, const Program& program) {
  const Outcome alone = outcome_of(replicas, 1, program);
  for (const int tasks : {2, 3, 4}) {
    if (tasks > replicas) continue;
    expect_same_bits(outcome_of(replicas, tasks, program), alone, internal::str(tasks, " tasks"));
  }
}

// Guide 004's model with normalization over all replicas and dropout.
Sequential make_elastic_model() {
  const auto initializer = initializers::GlorotUniform({.seed = 7});
  return Sequential(
      {layers::Conv2D(4, 3,
                      {.activation = "relu", .kernel_initializer = initializer, .name = "conv"}),
       layers::BatchNormalization({.synchronized = true, .name = "norm"}), layers::MaxPooling2D(),
       layers::Flatten(), layers::Dropout(0.25, {.seed = 11}),
       layers::Dense(3, {.kernel_initializer = initializer, .name = "dense"})});
}

void add_weights_of(const Sequential& model, Outcome& outcome) {
  for (const Variable& variable : model.variables()) outcome.add(variable.value());
}

struct ElasticTraining {
  bool concurrent = true;
  double clipnorm = 0.5;  // 0: none
};

void train_elastic_as(const ElasticTraining& how, const Strategy& strategy, Outcome& outcome) {
  constexpr int64_t kBatch = 11;  // does not divide evenly, nor do 25 images
  const LabelledImages data = make_images(25, float32);
  const auto scope = strategy.scope();
  const Sequential model = make_elastic_model();
  const optimizers::Adam optimizer({.learning_rate = 0.01, .global_clipnorm = how.clipnorm});
  const metrics::Mean mean_loss({.name = "mean_loss"});
  const losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(tuple(data.images, data.labels))
          .shuffle(25, {.seed = 3})
          .batch(kBatch));
  const distribute::RunOptions run_options{.concurrent = how.concurrent};
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(
        loss_object(labels, model(images, {.training = true})), {.global_batch_size = kBatch});
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean_loss(loss);
    return loss;
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : dataset) {
      outcome.add(strategy.reduce(ReduceOp::SUM, strategy.run(run_options, step, batch)));
    }
  }
  outcome.add(mean_loss.result());
  add_weights_of(model, outcome);
}

void train_elastic(const Strategy& strategy, Outcome& outcome) {
  train_elastic_as({}, strategy, outcome);
}

TEST(ElasticReplicas, TrainingDoesNotDependOnTheTasks) {
  for (const int replicas : {1, 5, 8}) expect_same_on_any_tasks(replicas, train_elastic);
}

TEST(ElasticReplicas, NorDoesItOnWhetherTheyTakeTurns) {
  for (const double clipnorm : {0.0, 0.5}) {
    const auto train = [clipnorm](bool concurrent) {
      return [=](const Strategy& strategy, Outcome& outcome) {
        train_elastic_as({concurrent, clipnorm}, strategy, outcome);
      };
    };
    const Outcome together = outcome_of(5, 1, train(true));
    for (const int tasks : {1, 2, 3}) {
      expect_same_bits(outcome_of(5, tasks, train(false)), together,
                       internal::str(tasks, " tasks"));
    }
  }
}

TEST(ElasticReplicas, NeitherDoSparseGradients) {
  expect_same_on_any_tasks(6, [](const Strategy& strategy, Outcome& outcome) {
    const auto scope = strategy.scope();
    const Sequential model(
        {layers::Embedding(20, 4,
                           {.embeddings_initializer = initializers::RandomUniform({.seed = 1}),
                            .name = "embedding"}),
         layers::GlobalAveragePooling1D()});
    const optimizers::Adagrad optimizer({.learning_rate = 0.1});
    const Tensor ids = at::arange(60, at::kLong).mul(7).remainder(20).reshape({20, 3});
    const auto dataset = strategy.experimental_distribute_dataset(
        data::Dataset::from_tensor_slices(ids).batch(10).repeat(2));
    for (const auto& batch : dataset) {
      strategy.run(
          [&](const Tensor& rows) {
            GradientTape tape;
            const Tensor loss = model(rows, {.training = true}).square().sum() * 0.3;
            optimizer.minimize(loss, model.trainable_variables(), tape);
          },
          batch);
    }
    add_weights_of(model, outcome);
  });
}

TEST(ElasticReplicas, NorDoesFit) {
  expect_same_on_any_tasks(7, [](const Strategy& strategy, Outcome& outcome) {
    const LabelledImages data = make_images(25, float32);
    const auto scope = strategy.scope();
    const Sequential model = make_elastic_model();
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9}),
                   .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"}});
    const auto history = model.fit(data.images, data.labels,
                                   {.batch_size = 10, .epochs = 2, .verbose = 0, .shuffle = false});
    for (const auto& [name, values] : history.history) {
      for (const double value : values) outcome.add(at::scalar_tensor(value, at::kDouble));
    }
    for (const auto& [name, value] : model.evaluate(data.images, data.labels, {.verbose = 0})) {
      outcome.add(at::scalar_tensor(value, at::kDouble));
    }
    outcome.add(model.predict(data.images, {.verbose = 0}).tensor());
    add_weights_of(model, outcome);
  });
}

TEST(ElasticReplicas, NorDoCollectivesOfAStep) {
  expect_same_on_any_tasks(6, [](const Strategy& strategy, Outcome& outcome) {
    const auto numbers = [](const distribute::ReplicaContext& replica) {
      const double id = replica.replica_id_in_sync_group();
      return (at::arange(50, at::kFloat) * (id + 1)).sin() * std::pow(10.0, id);
    };
    const auto results = strategy.run([&](distribute::ReplicaContext& replica) {
      const Tensor mine = numbers(replica);
      return tuple(replica.all_reduce(ReduceOp::SUM, mine),
                   replica.all_reduce(ReduceOp::MEAN, mine), replica.all_gather(mine, 0));
    });
    for (int i = 0; i < 3; ++i) {
      outcome.add(strategy.experimental_local_results(results)[0][i].tensor());
    }
    const auto each =
        strategy.run([&](distribute::ReplicaContext& replica) { return numbers(replica); });
    outcome.add(strategy.reduce(ReduceOp::SUM, each));
    outcome.add(strategy.reduce(ReduceOp::MEAN, each, 0));
    outcome.add(strategy.gather(each, 0));
  });
}

TEST(ElasticReplicas, NorDoPipelinesOfReplicas) {
  expect_same_on_any_tasks(5, [](const Strategy& strategy, Outcome& outcome) {
    const auto dataset =
        strategy.distribute_datasets_from_function([](const distribute::InputContext& context) {
          EXPECT_EQ(context.num_input_pipelines, 5);
          return data::Dataset::range(17)
              .shard(context.num_input_pipelines, context.input_pipeline_id)
              .batch(2);
        });
    for (const auto& batch : dataset)
      outcome.add(strategy.gather(strategy.run([](const Tensor& x) { return x; }, batch), 0));
  });
}

// Trains for two steps, saves and trains on, or restores and trains on, with layers and a generator
// that draw, and state of each replica's own.
void train_across_checkpoint(const Strategy& strategy, const std::string& path, bool restores,
                             Outcome& outcome) {
  const LabelledImages data = make_images(40, float32);
  const auto scope = strategy.scope();
  const Sequential model(
      {layers::Flatten(), layers::Dropout(0.3),
       layers::Dense(
           3, {.kernel_initializer = initializers::GlorotUniform({.seed = 1}), .name = "dense"}),
       layers::BatchNormalization({.name = "norm"})});
  const optimizers::Adam optimizer({.learning_rate = 0.01});
  const metrics::Mean mean_loss({.name = "mean_loss"});
  const auto generator = random::RandomGenerator::from_seed(9);
  auto input = strategy
                   .experimental_distribute_dataset(
                       data::Dataset::from_tensor_slices(tuple(data.images, data.labels))
                           .shuffle(40, {.seed = 3})
                           .batch(7)
                           .repeat())
                   .iterator();
  const train::Checkpoint checkpoint({{"model", model},
                                      {"optimizer", optimizer},
                                      {"mean_loss", mean_loss},
                                      {"generator", generator},
                                      {"random", strategy},
                                      {"input", input}});
  const losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor noisy = images + generator.normal(images.sizes(), {.stddev = 0.01});
    const Tensor loss = nn::compute_average_loss(
        loss_object(labels, model(noisy, {.training = true})), {.global_batch_size = 7});
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean_loss(loss);
    return loss;
  };
  const auto train = [&] {
    for (int i = 0; i < 2; ++i) {
      outcome.add(strategy.reduce(ReduceOp::SUM, strategy.run(step, input.get_next())));
    }
  };
  if (!restores) {
    train();
    checkpoint.write(path);
    return;
  }
  checkpoint.restore(path);
  train();
  outcome.add(mean_loss.result());
  add_weights_of(model, outcome);
}

TEST(ElasticReplicas, ACheckpointGoesOnOnAnyTasks) {
  const std::string path = internal::str(::testing::TempDir(), "elastic_replicas_", ::getpid());
  outcome_of(6, 3, [&](const Strategy& strategy, Outcome& outcome) {
    train_across_checkpoint(strategy, path, false, outcome);
  });
  expect_same_on_any_tasks(6, [&](const Strategy& strategy, Outcome& outcome) {
    train_across_checkpoint(strategy, path, true, outcome);
  });
}

TEST(ElasticReplicas, APlainValueIsThatOfAllTasks) {
  distribute::run_all_tasks(
      2, 1,
      [](const Strategy& strategy, int) {
        EXPECT_EQ(strategy.reduce(ReduceOp::MEAN, at::scalar_tensor(3.0)).item<double>(), 3.0);
        EXPECT_THROW(strategy.reduce(ReduceOp::SUM, at::scalar_tensor(3.0)), InvalidArgumentError);
        EXPECT_EQ(strategy.gather(at::arange(2), 0).numel(), 2);
      },
      {.elastic_replicas = 4});
}

}  // namespace
}  // namespace cohort::keras
