// The models of the step benchmark that a user of libtorch brings along.
// bench/peers/torch_models.py and tensorflow_models.py hold the same ones.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace bench {

struct Classifier : torch::nn::Module {
  // Inputs [batch, ..] -> logits [batch, 10].
  virtual at::Tensor forward(const at::Tensor& inputs) = 0;
};

// "mlp":       float32 [batch, 784]; one hidden layer of 128
// "embedding": int64 ids [batch, 10] out of 100,000; the mean of their 64 features; gradients
// sparse "lstm":      float32 [batch, 32, 64]; 128 units, their last state "resnet":    float32
// [batch, 32, 32, 3]; ResNet-18 for small images Errors: std::invalid_argument (another name).
std::shared_ptr<Classifier> make_classifier(const std::string& name);

}  // namespace bench
