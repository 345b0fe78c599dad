// Training with libtorch alone: one device, a loop by hand.
#include <torch/nn/modules/loss.h>
#include <torch/optim/adam.h>

#include <iostream>

#include "common/images.h"
#include "net.h"

int main() {
  constexpr int64_t kBatch = 64;
  const auto [train, test] = examples::load_images({});
  const torch::Tensor labels = train.labels.to(torch::kLong);
  torch::manual_seed(1);
  torch_fit::Net net;
  torch::nn::CrossEntropyLoss loss_function;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const torch::Tensor order = torch::randperm(labels.size(0));
    double total = 0;
    for (int64_t begin = 0; begin < labels.size(0); begin += kBatch) {
      const torch::Tensor rows = order.slice(0, begin, begin + kBatch);
      optimizer.zero_grad();
      const auto loss =
          loss_function(net(train.images.index_select(0, rows)), labels.index_select(0, rows));
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * static_cast<double>(rows.size(0));
    }
    std::cout << "Epoch " << epoch + 1 << ", loss " << total / static_cast<double>(labels.size(0))
              << '\n';
  }
}
