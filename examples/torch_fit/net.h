// An ordinary module of libtorch.
#pragma once

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace torch_fit {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv(register_module("conv", torch::nn::Conv2d(1, 16, 3))),
        hidden(register_module("hidden", torch::nn::Linear(16 * 13 * 13, 64))),
        output(register_module("output", torch::nn::Linear(64, 10))) {}

  // Shape: images [n, 28, 28, 1] -> scores [n, 10].
  torch::Tensor forward(const torch::Tensor& images) {
    const auto features = torch::max_pool2d(torch::relu(conv(images.permute({0, 3, 1, 2}))), 2);
    return output(torch::relu(hidden(features.flatten(1))));
  }

  torch::nn::Conv2d conv;
  torch::nn::Linear hidden, output;
};
TORCH_MODULE(Net);

}  // namespace torch_fit
