// For tests of fit: a small classifier and its data, and what is printed.
#pragma once

#include <string>

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

inline std::vector<double> all_weights(const ModelHandle& model) {
  std::vector<double> all;
  for (const Variable& variable : model.variables()) {
    for (const double value : elements(variable.value())) all.push_back(value);
  }
  return all;
}

}  // namespace cohort::keras
