#include "sections.h"

#include <iostream>

namespace custom_training {

namespace tf = cohort;
using tf::Tensor;
using tf::distribute::DistributedDataset;

namespace {

void report(const Trainer& trainer, int epoch, double loss) {
  std::cout << "Epoch " << epoch + 1 << ", Loss: " << loss
            << ", Accuracy: " << trainer.train_accuracy.result().item<double>() * 100 << '\n';
  trainer.train_accuracy.reset_states();
}

}  // namespace

void train_with_iterator(const Trainer& trainer, const DistributedDataset& dataset, int epochs) {
  constexpr int kSteps = 10;
  std::cout << "\nTen steps of an epoch, with an iterator\n";
  for (int epoch = 0; epoch < epochs; ++epoch) {
    auto iterator = dataset.iterator();
    double total_loss = 0;
    int num_batches = 0;
    for (; num_batches < kSteps; ++num_batches) {
      const auto batch = iterator.get_next_as_optional();
      if (!batch) break;
      total_loss += trainer.distributed_train_step(*batch);
    }
    report(trainer, epoch, total_loss / num_batches);
  }
}

void train_epoch_by_epoch(const Trainer& trainer, const DistributedDataset& dataset, int epochs) {
  std::cout << "\nA whole epoch in one function\n";
  for (int epoch = 0; epoch < epochs; ++epoch) {
    report(trainer, epoch, trainer.distributed_train_epoch(dataset));
  }
}

void track_loss_across_replicas(const tf::distribute::Strategy& strategy) {
  std::cout << "\nTracking the loss across replicas\n";
  // Two samples a replica, with losses [2, 3] on the first, [4, 5] on the second, and so on.
  const int replicas = strategy.num_replicas_in_sync();
  auto scope = strategy.scope();
  tf::keras::metrics::Mean metric({.name = "loss"});
  scope.close();
  const auto losses = strategy.run([&](tf::distribute::ReplicaContext& replica) {
    const double first = 2 + 2 * replica.replica_id_in_sync_group();
    const tf::Structure sum(first + (first + 1));
    const Tensor scaled = sum.tensor() / (2 * replicas);
    metric.update_state(scaled);
    return scaled;
  });
  const double sum = strategy.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
  std::cout << "Scaled losses: " << losses << "\nTheir sum, the loss of the global batch: " << sum
            << "\nWhat a Mean metric makes of them: " << metric.result().item<double>()
            << ", too small by the number of replicas, " << replicas << '\n';
}

}  // namespace custom_training
