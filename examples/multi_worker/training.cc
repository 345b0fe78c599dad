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

// Every worker reads all images and keeps its pieces of each batch, as a program with one worker does.
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
                        .repeat(options.epochs)));
}

DistributedDataset test_data(const MultiWorkerMirroredStrategy& strategy, const Images& images,
                             const Options& options) {
  return strategy.experimental_distribute_dataset(
      share_batches(Dataset::from_tensor_slices(tf::tuple(images.images, images.labels))
                        .batch(options.global_batch)));
}

// Results are those of all workers, so that all of them ask, and the chief speaks.
void finish_epoch(const Trainer& trainer, const DistributedDataset& test, int64_t epoch,
                  double train_loss, bool speaks) {
  for (const auto& batch : test) trainer.distributed_test_step(batch);
  const double train_accuracy = trainer.train_accuracy.result().item<double>() * 100;
  const double test_loss = trainer.test_loss.result().item<double>();
  const double test_accuracy = trainer.test_accuracy.result().item<double>() * 100;
  if (speaks) {
    say("Epoch ", epoch, ", Loss: ", train_loss, ", Accuracy: ", train_accuracy,
        ", Test Loss: ", test_loss, ", Test Accuracy: ", test_accuracy);
  }
  trainer.test_loss.reset_states();
  trainer.train_accuracy.reset_states();
  trainer.test_accuracy.reset_states();
}

}  // namespace

void train(const MultiWorkerMirroredStrategy& strategy, const Options& options) {
  const bool speaks = strategy.is_chief();
  if (speaks) {
    say("Workers: ", strategy.num_workers(), ", replicas: ", strategy.num_replicas_in_sync());
  }
  const auto [train, test] = examples::load_images({.data = options.data, .seed = options.seed});
  const int64_t steps_per_epoch =
      (train.images.size(0) + options.global_batch - 1) / options.global_batch;
  auto input = training_data(strategy, train, options).iterator();
  const DistributedDataset test_dataset = test_data(strategy, test, options);

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

  const int64_t first_step = trainer.optimizer().iterations().value().item<int64_t>();
  for (int64_t epoch = first_step / steps_per_epoch; epoch < options.epochs; ++epoch) {
    double total_loss = 0;
    for (int64_t step = 0; step < steps_per_epoch; ++step) {
      total_loss += trainer.distributed_train_step(input.get_next());
    }
    finish_epoch(trainer, test_dataset, epoch + 1,
                 total_loss / static_cast<double>(steps_per_epoch), speaks);
    if (checkpoints) checkpoints->save();
  }
  say("digest: ", digest(trainer.model().variables()));
}

}  // namespace multi_worker
