// The models of the step benchmark that are built of Keras layers, which run as plans.
// bench/peers/torch_models.py and tensorflow_models.py hold the same ones.
#pragma once

#include <cohort/cohort.h>

#include <optional>
#include <string>

namespace bench {

// "lstm":   float32 [batch, 32, 64]; 128 units, their last state
// "resnet": float32 [batch, 32, 32, 3]; ResNet-18 for small images
// Logits [batch, 10]. Nothing for other names.
std::optional<cohort::keras::ModelHandle> make_keras_model(const std::string& name);

}  // namespace bench
