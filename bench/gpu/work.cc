#include "work.h"

#include <ATen/Context.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/cuda.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

using at::Tensor;
namespace nn = torch::nn;

constexpr int64_t kVocabulary = 1000;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

// Keras' of README: NHWC images, a convolution of 3x3 without padding, pooling, a dense layer.
struct Cnn : Classifier {
  Tensor forward(const Tensor& images) override {
    const Tensor features = conv(images.permute({0, 3, 1, 2})).relu();
    return output(at::max_pool2d(features, 2).flatten(1));
  }

  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 32, 3)));
  nn::Linear output = register_module("output", nn::Linear(32 * 13 * 13, 10));
};

struct Bottleneck : nn::Module {
  Bottleneck(int64_t in, int64_t inner, int64_t stride) {
    const int64_t out = inner * 4;
    const auto add = [&](nn::Sequential& to, nn::Conv2d conv) {
      const int64_t channels = conv->options.out_channels();
      to->push_back(std::move(conv));
      to->push_back(nn::BatchNorm2d(channels));
    };
    nn::Sequential widening;
    add(first, convolution(in, inner, 1, 1));
    add(second, convolution(inner, inner, 3, stride));
    add(third, convolution(inner, out, 1, 1));
    register_module("first", first);
    register_module("second", second);
    register_module("third", third);
    if (stride == 1 && in == out) return;
    add(widening, convolution(in, out, 1, stride));
    shortcut = register_module("shortcut", widening);
  }

  Tensor forward(const Tensor& inputs) {
    const Tensor inside = second->forward(first->forward(inputs).relu_()).relu_();
    return (third->forward(inside) + (shortcut ? shortcut->forward(inputs) : inputs)).relu_();
  }

  nn::Sequential first, second, third;
  nn::Sequential shortcut{nullptr};
};

struct ResNet50 : Classifier {
  ResNet50() {
    int64_t in = 64, inner = 64;
    for (const int count : {3, 4, 6, 3}) {
      for (int i = 0; i < count; ++i) {
        blocks->push_back(std::make_shared<Bottleneck>(in, inner, i == 0 && inner != 64 ? 2 : 1));
        in = inner * 4;
      }
      inner *= 2;
    }
  }

  Tensor forward(const Tensor& images) override {
    const Tensor first = norm(conv(images.permute({0, 3, 1, 2}))).relu_();
    return output(blocks->forward(at::max_pool2d(first, 3, 2, 1)).mean({2, 3}));
  }

  nn::Conv2d conv = register_module("conv", convolution(3, 64, 7, 2));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(64));
  nn::Sequential blocks = register_module("blocks", nn::Sequential());
  nn::Linear output = register_module("output", nn::Linear(2048, 1000));
};

constexpr int64_t kWidth = 512;
constexpr int64_t kHeads = 8;

struct AttentionBlock : nn::Module {
  Tensor forward(const Tensor& x) {
    const int64_t batch = x.size(0), tokens = x.size(1);
    const Tensor all = projections(norm1(x))
                           .view({batch, tokens, 3, kHeads, kWidth / kHeads})
                           .permute({2, 0, 3, 1, 4});
    const Tensor attended = at::scaled_dot_product_attention(all[0], all[1], all[2]);
    const Tensor y = x + output(attended.transpose(1, 2).reshape({batch, tokens, kWidth}));
    return y + narrow(at::gelu(wide(norm2(y))));
  }

  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear projections = register_module("projections", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear output = register_module("output", nn::Linear(kWidth, kWidth));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear wide = register_module("wide", nn::Linear(kWidth, 4 * kWidth));
  nn::Linear narrow = register_module("narrow", nn::Linear(4 * kWidth, kWidth));
};

struct Transformer : Classifier {
  explicit Transformer(int64_t num_blocks) {
    for (int64_t i = 0; i < num_blocks; ++i) blocks->push_back(std::make_shared<AttentionBlock>());
  }

  Tensor forward(const Tensor& ids) override { return output(blocks->forward(table(ids)).mean(1)); }

  nn::Embedding table = register_module("table", nn::Embedding(kVocabulary, kWidth));
  nn::Sequential blocks = register_module("blocks", nn::Sequential());
  nn::Linear output = register_module("output", nn::Linear(kWidth, 10));
};

}  // namespace

GpuWork GpuWork::parse(const std::string& name, bool small) {
  GpuWork work{.name = name, .side = {}, .model = {}};
  std::istringstream parts(name);
  std::string batch;
  std::getline(parts, work.side, '/');
  std::getline(parts, work.model, '/');
  std::getline(parts, batch, '/');
  for (std::string flag; std::getline(parts, flag, '/');) work.flags.insert(flag);
  work.batch = std::atoll(batch.c_str());
  if (work.batch < 1) throw std::invalid_argument("'" + name + "' is not SIDE/MODEL/BATCH[/FLAG]");
  if (small) work.batch = std::min<int64_t>(work.batch, work.model == "resnet50" ? 2 : 8);
  work.small = small;
  return work;
}

bool uses_adam(const GpuWork& work) { return work.model.rfind("resnet", 0) != 0; }

int64_t embedding_rows(const GpuWork& work) { return work.small ? 10'000 : 10'000'000; }

std::shared_ptr<Classifier> make_gpu_classifier(const GpuWork& work) {
  if (work.model == "cnn") return std::make_shared<Cnn>();
  if (work.model == "resnet18") return make_classifier("resnet");
  if (work.model == "resnet50") return std::make_shared<ResNet50>();
  if (work.model == "transformer") return std::make_shared<Transformer>(work.small ? 1 : 6);
  throw std::invalid_argument("no model of libtorch's is called '" + work.model + "'");
}

std::pair<Tensor, Tensor> make_gpu_data(const GpuWork& work, int64_t batches) {
  const int64_t rows = work.batch * batches;
  const auto labels = [&](int64_t classes) { return at::randint(classes, {rows}, at::kLong); };
  if (work.model == "cnn") return {at::rand({rows, 28, 28, 1}), labels(10)};
  if (work.model == "resnet18") return {at::rand({rows, 32, 32, 3}), labels(10)};
  if (work.model == "resnet50") {
    const int64_t side = work.small ? 64 : 224;
    return {at::rand({rows, side, side, 3}), labels(1000)};
  }
  if (work.model == "transformer") {
    return {at::randint(kVocabulary, {rows, work.small ? 16 : 128}, at::kLong), labels(10)};
  }
  if (work.model == "embedding") {
    return {at::randint(embedding_rows(work), {rows, 10}, at::kLong), labels(10)};
  }
  throw std::invalid_argument("no model is called '" + work.model + "'");
}

c10::Device gpu_or_cpu() {
  return at::hasCUDA() ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
}

void wait_for_gpu() {
  if (at::hasCUDA()) torch::cuda::synchronize();
}

}  // namespace bench
