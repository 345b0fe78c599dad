// For tests of fit: a small classifier and its data, and what is printed.
#pragma once

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/testing_training.h"

namespace cohort::keras {

inline Sequential small_classifier(uint64_t seed = 7) {
  const auto initializer = initializers::GlorotUniform({.seed = seed});
  return Sequential(
      {layers::Conv2D(2, 3,
                      {.activation = "relu", .kernel_initializer = initializer, .name = "conv"}),
       layers::Flatten(), layers::Dense(3, {.kernel_initializer = initializer, .name = "dense"})});
}

inline losses::SparseCategoricalCrossentropy class_loss() {
  return losses::SparseCategoricalCrossentropy({.from_logits = true});
}

inline CompileOptions class_options() {
  return {.optimizer = optimizers::Adam({.learning_rate = 0.01}),
          .loss = class_loss(),
          .metrics = {"accuracy"}};
}

inline data::Dataset image_batches(int64_t count, int64_t batch, DType dtype = float32) {
  const LabelledImages data = make_images(count, dtype);
  return data::Dataset::from_tensor_slices(tuple(data.images, data.labels)).batch(batch);
}

// Its train_step updates no metric of compile; its test_step, which is Keras's, updates all.
class TrainsByLossAlone : public Model {
 public:
  TrainsByLossAlone() { track("dense", dense_); }
  Tensor call(const Tensor& x, const CallOptions&) override { return dense_(x); }

 protected:
  Structure train_step(const Structure& data) override {
    const Batch batch = unpack_x_y_sample_weight(data);
    GradientTape tape;
    const Structure y_pred = (*this)(batch.x, {.training = true});
    optimizer().minimize(compute_loss(batch.y, y_pred), trainable_variables(), tape);
    return Structure();
  }

 private:
  layers::LayerHandle dense_ = layers::Dense(1);
};

// The names in the logs of such a training with metrics, of which one is 0 when it is updated.
inline std::vector<std::string> names_when_trained_by_loss_alone() {
  const ModelHandle model = std::make_shared<TrainsByLossAlone>();
  model.compile({.optimizer = "sgd",
                 .loss = "mse",
                 .metrics = {metrics::MeanAbsoluteError({.name = "error"}),
                             metrics::TruePositives({.name = "hits"})}});
  const auto dataset =
      data::Dataset::from_tensor_slices(tuple(at::ones({8, 1}), at::zeros({8, 1}))).batch(4);
  const History history =
      model.fit(dataset, {.epochs = 2, .verbose = 0, .validation_data = dataset});
  std::vector<std::string> names;
  for (const auto& [name, numbers] : history.history) {
    if (numbers.size() == 2) names.push_back(name);
  }
  return names;
}

inline std::vector<double> all_weights(const ModelHandle& model) {
  std::vector<double> all;
  for (const Variable& variable : model.variables()) {
    for (const double value : elements(variable.value())) all.push_back(value);
  }
  return all;
}

}  // namespace cohort::keras
