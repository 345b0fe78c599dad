// Guide 004's model and step, from given weights on given batches.
#include <ATen/ops/zeros.h>
#include <cohort/cohort.h>

#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using keras::layers::Conv2D;
using keras::layers::Dense;
using keras::layers::Flatten;
using keras::layers::MaxPooling2D;

keras::Sequential guide_model() {
  const keras::regularizers::L2 l2(1e-5);
  return keras::Sequential(
      {Conv2D(32, 3, {.activation = "relu", .kernel_regularizer = l2}), MaxPooling2D(),
       Conv2D(64, 3, {.activation = "relu", .kernel_regularizer = l2}), MaxPooling2D(), Flatten(),
       Dense(64, {.activation = "relu", .kernel_regularizer = l2}),
       Dense(10, {.kernel_regularizer = l2})});
}

void set_weights(const keras::Sequential& model, const Json& weights) {
  model(at::zeros({1, 28, 28, 1}));  // builds it
  std::vector<Tensor> values;
  for (const Json& weight : weights) values.push_back(tensor_of(weight));
  model.set_weights(values);
}

// One dataset of one batch: what experimental_distribute_dataset splits.
data::Dataset dataset_of(const Json& batch) {
  return data::Dataset::from_tensors(
      tuple(tensor_of(batch.at("images")), tensor_of(batch.at("labels"))));
}

}  // namespace

Json train_guide_004(const Json& request) {
  config::set_logical_device_configuration("CPU", request.at("replicas"));
  const int64_t global_batch = request.at("global_batch");
  const double learning_rate = request.at("learning_rate");
  distribute::MirroredStrategy strategy;

  keras::Sequential model;
  keras::optimizers::Adam optimizer;
  {
    auto scope = strategy.scope();
    model = guide_model();
    optimizer = keras::optimizers::Adam({.learning_rate = learning_rate});
    set_weights(model, request.at("weights"));
  }
  keras::losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = keras::losses::Reduction::NONE});

  auto train_step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    auto predictions = model(images, {.training = true});
    auto loss = nn::compute_average_loss(loss_object(labels, predictions),
                                         {.global_batch_size = global_batch});
    loss = loss + nn::scale_regularization_loss(add_n(model.losses()));
    auto gradients = tape.gradient(loss, model.trainable_variables());
    optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
    return loss;
  };

  std::vector<double> losses;
  const Json& batches = request.at("batches");
  for (size_t step = 0; step < request.at("steps").get<size_t>(); ++step) {
    const Json& batch = batches.at(step % batches.size());
    for (const auto& inputs : strategy.experimental_distribute_dataset(dataset_of(batch))) {
      auto per_replica = strategy.run(train_step, inputs);
      losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, per_replica).item<double>());
    }
  }
  return {{"losses", losses}};
}

}  // namespace cohort::interop
