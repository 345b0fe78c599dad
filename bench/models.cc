#include "models.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <stdexcept>

namespace bench {
namespace {

using at::Tensor;
namespace nn = torch::nn;

constexpr int kClasses = 10;

struct Mlp : Classifier {
  Tensor forward(const Tensor& inputs) override { return output(hidden(inputs).relu()); }

  nn::Linear hidden = register_module("hidden", nn::Linear(784, 128));
  nn::Linear output = register_module("output", nn::Linear(128, kClasses));
};

struct Embedding : Classifier {
  Tensor forward(const Tensor& inputs) override { return output(table(inputs)); }

  nn::EmbeddingBag table = register_module(
      "table",
      nn::EmbeddingBag(nn::EmbeddingBagOptions(100'000, 64).mode(torch::kMean).sparse(true)));
  nn::Linear output = register_module("output", nn::Linear(64, kClasses));
};

struct Lstm : Classifier {
  Tensor forward(const Tensor& inputs) override {
    return output(std::get<0>(lstm(inputs)).select(1, -1));
  }

  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(64, 128).batch_first(true)));
  nn::Linear output = register_module("output", nn::Linear(128, kClasses));
};

nn::Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct ResidualBlock : nn::Module {
  ResidualBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module("conv1", convolution(in, out, 3, stride))),
        norm1(register_module("norm1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", convolution(out, out, 3, 1))),
        norm2(register_module("norm2", nn::BatchNorm2d(out))) {
    if (stride != 1 || in != out) {
      shortcut = register_module(
          "shortcut", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }

  Tensor forward(const Tensor& inputs) {
    const Tensor inside = norm2(conv2(norm1(conv1(inputs)).relu_()));
    return (inside + (shortcut ? shortcut->forward(inputs) : inputs)).relu_();
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d norm1;
  nn::Conv2d conv2;
  nn::BatchNorm2d norm2;
  nn::Sequential shortcut{nullptr};
};

struct ResNet18 : Classifier {
  ResNet18() {
    int64_t in = 64;
    for (const int64_t out : {64, 128, 256, 512}) {
      for (const int64_t stride : {out == 64 ? 1 : 2, 1}) {
        blocks->push_back(std::make_shared<ResidualBlock>(in, out, stride));
        in = out;
      }
    }
  }

  Tensor forward(const Tensor& inputs) override {
    const Tensor first = norm(conv(inputs.permute({0, 3, 1, 2}))).relu_();
    return output(blocks->forward(first).mean({2, 3}));
  }

  nn::Conv2d conv = register_module("conv", convolution(3, 64, 3, 1));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(64));
  nn::Sequential blocks = register_module("blocks", nn::Sequential());
  nn::Linear output = register_module("output", nn::Linear(512, kClasses));
};

}  // namespace

std::shared_ptr<Classifier> make_classifier(const std::string& name) {
  if (name == "mlp") return std::make_shared<Mlp>();
  if (name == "embedding") return std::make_shared<Embedding>();
  if (name == "lstm") return std::make_shared<Lstm>();
  if (name == "resnet") return std::make_shared<ResNet18>();
  throw std::invalid_argument("no model is called '" + name + "'");
}

}  // namespace bench
