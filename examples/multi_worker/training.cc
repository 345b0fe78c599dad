#include "training.h"

#include <iostream>
#include <optional>
#include <sstream>

#include "common/images.h"
#include "common/trainer.h"
#include "digest.h"

namespace multi_worker {

namespace tf = cohort;
using examples::Images;
using examples::Trainer;
using tf::data::Dataset;
using tf::distribute::DistributedDataset;
using tf::distribute::MultiWorkerMirroredStrategy;

namespace {

// A line is one write, so that those of several tasks do not mix.
template <class... Parts>
void say(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  line << '\n';
  std::cout << line.str() << std::flush;
}

// Every worker reads all images and keeps its pieces of each batch, as a program with one worker
// does.
Dataset share_batches(const Dataset& dataset) {
  tf::data::Options options;
  options.experimental_distribute.auto_shard_policy = tf::data::AutoShardPolicy::DATA;
  return dataset.with_options(options);
}

DistributedDataset training_data(const MultiWorkerMirroredStrategy& strategy, const Images& images,
                                 const Options& options) {
  return strategy.experimental_distribute_dataset(
      share_batches(Dataset::from_tensor_slices(tf::tuple(images.images, images.labels))
                        .shuffle(images.images.size(0), {.seed = options.seed})
                        .batch(options.global_batch)
                        .repeat()));
}

DistributedDataset test_data(const MultiWorkerMirroredStrategy& strategy, const Images& images,
                             const Options& options) {
  return strategy.experimental_distribute_dataset(
      share_batches(Dataset::from_tensor_slices(tf::tuple(images.images, images.labels))
                        .batch(options.global_batch)));
}

struct TestResult {
  double loss;
  double accuracy;
};

// Results are those of all workers, so that all of them ask, and the chief speaks.
TestResult test(const Trainer& trainer, const DistributedDataset& dataset) {
  for (const auto& batch : dataset) trainer.distributed_test_step(batch);
  const TestResult result{.loss = trainer.test_loss.result().item<double>(),
                          .accuracy = trainer.test_accuracy.result().item<double>() * 100};
  trainer.test_loss.reset_states();
  trainer.test_accuracy.reset_states();
  return result;
}

// The mean loss of the epoch's batches.
double train_epoch(const Trainer& trainer, tf::distribute::DistributedIterator& input,
                   int64_t steps) {
  double total_loss = 0;
  for (int64_t step = 0; step < steps; ++step) {
    total_loss += trainer.distributed_train_step(input.get_next());
  }
  return total_loss / static_cast<double>(steps);
}

}  // namespace

void train(const MultiWorkerMirroredStrategy& strategy, const Options& options) {
  const bool speaks = strategy.is_chief();
  if (speaks) {
    say("Workers: ", strategy.num_workers(), ", replicas: ", strategy.num_replicas_in_sync());
  }
  const examples::TrainTestImages images =
      examples::load_images({.data = options.data, .seed = options.seed});
  const int64_t steps_per_epoch =
      (images.train.images.size(0) + options.global_batch - 1) / options.global_batch;
  auto input = training_data(strategy, images.train, options).iterator();
  const DistributedDataset test_dataset = test_data(strategy, images.test, options);

  const Trainer trainer(strategy, options.global_batch);
  // The first worker writes, all restore: the position in the data and the random numbers, too.
  std::optional<tf::train::CheckpointManager> checkpoints;
  if (!options.checkpoints.empty()) {
    checkpoints.emplace(tf::train::Checkpoint({{"model", trainer.model()},
                                               {"optimizer", trainer.optimizer()},
                                               {"input", input},
                                               {"random", strategy}}),
                        options.checkpoints, tf::train::CheckpointManagerOptions{.max_to_keep = 2});
    if (const auto path = checkpoints->restore_or_initialize(); path && speaks) {
      say("Restored ", *path);
    }
  }

  const int64_t first_epoch =
      trainer.optimizer().iterations().value().item<int64_t>() / steps_per_epoch;
  for (int64_t epoch = first_epoch; epoch < options.epochs; ++epoch) {
    const double train_loss = train_epoch(trainer, input, steps_per_epoch);
    const double train_accuracy = trainer.train_accuracy.result().item<double>() * 100;
    trainer.train_accuracy.reset_states();
    const TestResult result = test(trainer, test_dataset);
    if (speaks) {
      say("Epoch ", epoch + 1, ", Loss: ", train_loss, ", Accuracy: ", train_accuracy,
          ", Test Loss: ", result.loss, ", Test Accuracy: ", result.accuracy);
    }
    if (checkpoints) checkpoints->save();
  }
  if (first_epoch >= options.epochs) {  // what was restored gets its values with the first batch
    const TestResult result = test(trainer, test_dataset);
    if (speaks) {
      say("Trained already, Test Loss: ", result.loss, ", Test Accuracy: ", result.accuracy);
    }
  }
  say("digest: ", digest(trainer.model().variables()));
}

}  // namespace multi_worker
