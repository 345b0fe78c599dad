#include "cohort/parameter_server/variables/sampled_loss.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/nn_ops.h"
#include "cohort/ops/sampling/stateless_random.h"

namespace cohort::nn {
namespace {

using distribute::ShardedVariable;
using distribute::Variable;
using ::testing::HasSubstr;

constexpr int64_t kClasses = 6;

// Every class drawn once, with the expectation 1.
random::SampledCandidates every_class() {
  return {.sampled_candidates = at::arange(kClasses),
          .true_expected_count = at::full({2, 1}, 1.f),
          .sampled_expected_count = at::full({kClasses}, 1.f)};
}

TEST(SampledLoss, OfAllClassesIsThatOfTheWholeSoftmax) {
  const Tensor weights = random::stateless_normal({kClasses, 3}, {1, 1});
  const Tensor biases = random::stateless_normal({kClasses}, {1, 2});
  const Tensor inputs = random::stateless_normal({2, 3}, {1, 3});
  const Tensor labels = constant({{4}, {0}});
  // If accidental hits are removed, an example's own class is there once.
  const Tensor losses = sampled_softmax_loss(weights, biases, labels, inputs, kClasses, kClasses,
                                             {.sampled_values = every_class()});
  const Tensor whole = sparse_softmax_cross_entropy_with_logits(
      labels.squeeze(1), inputs.matmul(weights.t()) + biases);
  EXPECT_TRUE(losses.allclose(whole));
}

TEST(SampledLoss, ReadsAndMovesOnlyTheRowsOfItsClasses) {
  const ShardedVariable weights({Variable(at::zeros({3, 2})), Variable(at::zeros({3, 2}))}, "w");
  const Variable biases(at::zeros({kClasses}));
  const random::SampledCandidates two = {.sampled_candidates = constant({1, 3}),
                                         .true_expected_count = at::full({2, 1}, 1.f),
                                         .sampled_expected_count = at::full({2}, 1.f)};
  GradientTape tape;
  const Tensor loss = nce_loss(weights, biases, constant({{0}, {1}}), at::full({2, 2}, 1.f), 2,
                               kClasses, {.sampled_values = two})
                          .sum();
  const std::vector<Tensor> gradients = tape.gradient(loss, weights.variables());
  EXPECT_GT(gradients[0].to_dense().narrow(0, 0, 2).abs().min().item<float>(), 0);
  EXPECT_EQ(gradients[0].to_dense()[2].abs().sum().item<float>(), 0);
  EXPECT_GT(gradients[1].to_dense()[0].abs().min().item<float>(), 0);
}

TEST(SampledLoss, DrawsByItself) {
  const Tensor weights = at::zeros({kClasses, 2});
  const auto losses = [&](uint64_t seed) {
    return sampled_softmax_loss(weights, at::arange(kClasses).to(float32), constant({{0}, {1}}),
                                at::zeros({2, 2}), 3, kClasses, {.seed = seed});
  };
  EXPECT_TRUE(losses(1).equal(losses(1)));
  EXPECT_FALSE(losses(1).equal(losses(5)));
}

TEST(SampledLoss, RefusesWhatDoesNotFit) {
  const Tensor weights = at::zeros({kClasses, 2});
  const Tensor biases = at::zeros({kClasses});
  const auto refused = [&](const Tensor& labels, const Tensor& inputs, int64_t num_sampled) {
    return thrown<InvalidArgumentError>([&] {
      nce_loss(weights, biases, labels, inputs, num_sampled, kClasses,
               {.sampled_values = every_class()});
    });
  };
  const Tensor inputs = at::zeros({2, 2});
  EXPECT_THAT(refused(constant({0, 1}), inputs, kClasses), HasSubstr("labels [batch, num_true]"));
  EXPECT_THAT(refused(constant({{0}, {1}}), at::zeros({2, 3}), kClasses), HasSubstr("weights"));
  EXPECT_THAT(refused(constant({{0}, {1}}), inputs, 2), HasSubstr("sampled_values"));
  EXPECT_THAT(refused(constant({{0}, {6}}), inputs, kClasses), HasSubstr("6"));
}

}  // namespace
}  // namespace cohort::nn
