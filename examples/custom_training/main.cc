// Guide 004, custom training with tf.distribute, on N replicas of this machine.
#include <iostream>

#include "common/images.h"
#include "common/trainer.h"
#include "options.h"
#include "progress_bar.h"
#include "restored.h"
#include "sections.h"
#include "step_profile.h"

namespace tf = cohort;

namespace custom_training {
namespace {

using tf::data::Dataset;

void train_and_test(const Trainer& trainer, const tf::distribute::DistributedDataset& train,
                    const tf::distribute::DistributedDataset& test, const Options& options) {
  const tf::train::Checkpoint checkpoint = trainer.checkpoint();
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    double total_loss = 0;
    int64_t num_batches = 0;
    const StepProfile profile(options, epoch);
    {
      ProgressBar bar(epoch + 1, train.cardinality());
      for (const auto& batch : train) {
        const double loss = trainer.distributed_train_step(batch);
        total_loss += loss;
        ++num_batches;
        if (bar.visible()) {
          int64_t samples = 0;
          for (const tf::Structure& piece : batch.values()) samples += piece[0].tensor().size(0);
          bar.step(loss, samples);
        }
      }
    }
    profile.report();
    const double train_loss = total_loss / static_cast<double>(num_batches);
    for (const auto& batch : test) trainer.distributed_test_step(batch);

    if (epoch % 2 == 0 || epoch + 1 == options.epochs) {
      checkpoint.save(options.checkpoint_dir + "/ckpt");
    }
    std::cout << "Epoch " << epoch + 1 << ", Loss: " << train_loss
              << ", Accuracy: " << trainer.train_accuracy.result().item<double>() * 100
              << ", Test Loss: " << trainer.test_loss.result().item<double>()
              << ", Test Accuracy: " << trainer.test_accuracy.result().item<double>() * 100
              << std::endl;
    trainer.test_loss.reset_states();
    trainer.train_accuracy.reset_states();
    trainer.test_accuracy.reset_states();
  }
}

void run(const Options& options) {
  tf::config::keep_freed_memory();
  tf::random::set_seed(options.seed);
  tf::config::set_logical_device_configuration("CPU", options.replicas);
  std::vector<std::string> devices;
  for (const auto& device : tf::config::list_logical_devices("CPU")) devices.push_back(device.name);
  const tf::distribute::MirroredStrategy strategy(devices);
  std::cout << "Number of devices: " << strategy.num_replicas_in_sync() << std::endl;

  const auto [train, test] = examples::load_images(
      {.data = options.data, .dataset = options.dataset, .seed = options.seed});
  const auto train_dataset = strategy.experimental_distribute_dataset(
      Dataset::from_tensor_slices(tf::tuple(train.images, train.labels))
          .shuffle(train.images.size(0), {.seed = options.seed})
          .batch(options.global_batch));
  const auto test_batches =
      Dataset::from_tensor_slices(tf::tuple(test.images, test.labels)).batch(options.global_batch);
  const auto test_dataset = strategy.experimental_distribute_dataset(test_batches);

  const Trainer trainer(strategy, options.global_batch);
  train_and_test(trainer, train_dataset, test_dataset, options);
  std::cout << "Accuracy after restoring the saved model without strategy: "
            << restored_accuracy(options.checkpoint_dir, test_batches) * 100 << std::endl;
  if (options.all_sections) {
    train_with_iterator(trainer, train_dataset, options.epochs);
    train_epoch_by_epoch(trainer, train_dataset, options.epochs);
    track_loss_across_replicas(strategy);
  }
}

}  // namespace
}  // namespace custom_training

int main(int argc, char** argv) {
  const custom_training::Options options = custom_training::parse_options(argc, argv);
  return tf::run_program([&] { custom_training::run(options); });
}
