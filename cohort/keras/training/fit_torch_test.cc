// fit of libtorch's modules with libtorch's losses.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <vector>

#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  NetImpl() : linear(register_module("linear", torch::nn::Linear(64, 3))) {}
  Tensor forward(const Tensor& x) { return linear(x.flatten(1)); }
  torch::nn::Linear linear;
};
TORCH_MODULE(Net);

TEST(FitTorch, TrainsModulesOfLibtorchWithLossesOfLibtorch) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const LabelledImages data = make_images(13, float32);
  const auto train = [&](const CompileOptions& options) {
    torch::manual_seed(4);
    const TorchModel model([] { return Net(); });
    model.compile(options);
    return model.fit(data.images, data.labels,
                     {.batch_size = 4, .epochs = 3, .verbose = 0, .shuffle = false})["loss"];
  };
  const auto by_module = train({.optimizer = "sgd", .loss = torch::nn::CrossEntropyLoss()});
  EXPECT_LT(by_module.back(), by_module.front());
  const auto by_function =
      train({.optimizer = "sgd", .loss = [](const Tensor& labels, const Tensor& logits) {
               return at::cross_entropy_loss(logits, labels);
             }});
  EXPECT_EQ(by_module, by_function);
  const auto by_keras = train({.optimizer = "sgd", .loss = class_loss()});
  EXPECT_LT(curve_difference(by_module, by_keras), 1e-5);
}

TEST(FitTorch, SumsOfLibtorchsLossesAreOfTheWholeBatch) {
  std::vector<double> losses;
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    torch::manual_seed(4);
    const TorchModel model([] { return Net(); });
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-3}),
                   .loss = torch::nn::CrossEntropyLoss(
                       torch::nn::CrossEntropyLossOptions().reduction(torch::kSum))});
    const LabelledImages data = make_images(13, float32);
    for (int step = 0; step < 3; ++step) {
      losses.push_back(model.train_on_batch(data.images, data.labels)["loss"]);
    }
  }
  for (size_t step = 0; step < 3; ++step) {
    EXPECT_NEAR(losses[step + 3], losses[step], 1e-4 * losses[step]);
  }
}

TEST(FitTorch, RefusesALossWithParameters) {
  struct Scaled : torch::nn::Module {
    Scaled() { scale = register_parameter("scale", at::ones({})); }
    Tensor forward(const Tensor& x, const Tensor& y) { return ((x - y) * scale).square().mean(); }
    Tensor scale;
  };
  EXPECT_THAT([] { LossArgument{std::make_shared<Scaled>()}; },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("parameter 'scale'")));
}

TEST(FitTorch, WeightsOfRowsNeedALossOfEach) {
  const TorchModel model([] { return Net(); });
  model.compile({.optimizer = "sgd", .loss = torch::nn::CrossEntropyLoss()});
  const LabelledImages data = make_images(4, float32);
  EXPECT_THAT(
      [&] { model.fit(data.images, data.labels, {.verbose = 0, .sample_weight = at::ones({4})}); },
      ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("torch::kNone")));
}

}  // namespace
}  // namespace cohort::keras
