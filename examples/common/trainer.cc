#include "common/trainer.h"

namespace examples {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::distribute::PerReplica;

tf::keras::Sequential create_model() {
  const tf::keras::regularizers::L2 regularizer(1e-5);
  namespace layers = tf::keras::layers;
  return tf::keras::Sequential({
      layers::Conv2D(32, 3, {.activation = "relu", .kernel_regularizer = regularizer}),
      layers::MaxPooling2D(),
      layers::Conv2D(64, 3, {.activation = "relu", .kernel_regularizer = regularizer}),
      layers::MaxPooling2D(),
      layers::Flatten(),
      layers::Dense(64, {.activation = "relu", .kernel_regularizer = regularizer}),
      layers::Dense(10, {.kernel_regularizer = regularizer}),
  });
}

// A model, an optimizer and metrics must be created under the scope: it is open for as long as the
// constructor that gets it runs.
Trainer::Trainer(const tf::distribute::Strategy& strategy, int64_t global_batch)
    : Trainer(strategy, global_batch, strategy.scope()) {}

Trainer::Trainer(const tf::distribute::Strategy& strategy, int64_t global_batch,
                 const tf::distribute::Scope&)
    : test_loss({.name = "test_loss"}),
      train_accuracy({.name = "train_accuracy"}),
      test_accuracy({.name = "test_accuracy"}),
      strategy_(strategy),
      global_batch_(global_batch),
      model_(create_model()),
      optimizer_({.learning_rate = 0.001}),
      // Reduction NONE: the sum is divided by the global batch below.
      loss_object_({.from_logits = true, .reduction = tf::keras::losses::Reduction::NONE}) {}

tf::train::Checkpoint Trainer::checkpoint() const {
  return tf::train::Checkpoint({{"optimizer", optimizer_}, {"model", model_}});
}

Tensor Trainer::compute_loss(const Tensor& labels, const Tensor& predictions) const {
  Tensor loss = tf::nn::compute_average_loss(loss_object_(labels, predictions),
                                             {.global_batch_size = global_batch_});
  if (const auto losses = model_.losses(); !losses.empty()) {
    loss = loss + tf::nn::scale_regularization_loss(tf::add_n(losses));
  }
  return loss;
}

Tensor Trainer::train_step(const Tensor& images, const Tensor& labels) const {
  tf::GradientTape tape;
  const Tensor predictions = model_(images, {.training = true});
  const Tensor loss = compute_loss(labels, predictions);
  const auto variables = model_.trainable_variables();
  const auto gradients = tape.gradient(loss, variables);
  optimizer_.apply_gradients(tf::zip(gradients, variables));
  train_accuracy.update_state(labels, predictions);
  return loss;
}

void Trainer::test_step(const Tensor& images, const Tensor& labels) const {
  const Tensor predictions = model_(images, {.training = false});
  test_loss.update_state(loss_object_(labels, predictions));
  test_accuracy.update_state(labels, predictions);
}

double Trainer::distributed_train_step(const PerReplica<Structure>& batch) const {
  const auto step = [this](const Tensor& images, const Tensor& labels) {
    return train_step(images, labels);
  };
  const PerReplica<Tensor> losses = strategy_.run(step, batch);
  return strategy_.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
}

void Trainer::distributed_test_step(const PerReplica<Structure>& batch) const {
  strategy_.run([this](const Tensor& images, const Tensor& labels) { test_step(images, labels); },
                batch);
}

double Trainer::distributed_train_epoch(const tf::distribute::DistributedDataset& dataset) const {
  double total_loss = 0;
  int64_t num_batches = 0;
  for (const auto& batch : dataset) {
    total_loss += distributed_train_step(batch);
    ++num_batches;
  }
  return total_loss / static_cast<double>(num_batches);
}

}  // namespace examples
