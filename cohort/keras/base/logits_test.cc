#include "cohort/keras/base/logits.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/keras/layers/dense.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::internal {
namespace {

using keras::activations::Activation;
using keras::losses::BinaryCrossentropy;
using keras::losses::CategoricalCrossentropy;
using keras::losses::SparseCategoricalCrossentropy;

const Activation kSigmoid("sigmoid");
const Activation kSoftmax("softmax");

Tensor saturated() { return constant({{60.}, {-60.}, {0.5}}, float64).requires_grad_(); }

TEST(Logits, SaturatedOutputsOfASigmoidHaveGradients) {
  const Tensor logits = saturated(), labels = constant({{0.}, {1.}, {1.}}, float64);
  const BinaryCrossentropy loss({.reduction = keras::losses::Reduction::SUM});
  const BinaryCrossentropy of_logits(
      {.from_logits = true, .reduction = keras::losses::Reduction::SUM});
  GradientTape tape({.persistent = true});
  const Tensor found = loss(labels, activate_outputs(kSigmoid, logits));
  const Tensor expected = of_logits(labels, logits);
  EXPECT_EQ(found.item<double>(), expected.item<double>());
  EXPECT_GT(found.item<double>(), 119);
  EXPECT_TRUE(at::equal(tape.gradient(found, logits), tape.gradient(expected, logits)));
}

TEST(Logits, SaturatedOutputsOfASoftmaxHaveGradients) {
  const Tensor logits = constant({{60., 0., -60.}, {1., 2., 3.}}, float64).requires_grad_();
  const Tensor classes = at::tensor({2, 0}, int64);
  const Tensor labels = constant({{0., 0., 1.}, {1., 0., 0.}}, float64);
  for (const bool is_sparse : {false, true}) {
    const auto loss = [&](const Tensor& predictions, bool from_logits) {
      return is_sparse
                 ? SparseCategoricalCrossentropy({.from_logits = from_logits})(classes, predictions)
                 : CategoricalCrossentropy({.from_logits = from_logits})(labels, predictions);
    };
    GradientTape tape({.persistent = true});
    const Tensor found = loss(activate_outputs(kSoftmax, logits), false);
    const Tensor expected = loss(logits, true);
    EXPECT_EQ(found.item<double>(), expected.item<double>());
    EXPECT_TRUE(at::equal(tape.gradient(found, logits), tape.gradient(expected, logits)));
  }
}

TEST(Logits, AreKnownWithoutATapeAndAfterItsGradient) {
  const Tensor logits = saturated();
  EXPECT_TRUE(
      at::equal(logits_of_sigmoid(activate_outputs(kSigmoid, logits.detach())), logits.detach()));
  GradientTape tape;
  const Tensor probabilities = activate_outputs(kSigmoid, logits);
  tape.gradient(probabilities.sum(), logits);
  EXPECT_TRUE(at::equal(logits_of_sigmoid(probabilities), logits.detach()));
}

TEST(Logits, OfAsManyProbabilitiesAsLiveAreKnown) {
  const NoGradient no_gradient;
  std::vector<std::pair<Tensor, Tensor>> made;  // logits and probabilities
  for (int i = 0; i < 20; ++i) {
    const Tensor logits = saturated();
    made.emplace_back(logits, activate_outputs(kSigmoid, logits));
  }
  for (const auto& [logits, probabilities] : made) {
    EXPECT_TRUE(at::equal(logits_of_sigmoid(probabilities), logits));
  }
}

TEST(Logits, OfOtherTensorsAreNotKnown) {
  const Tensor probabilities = activate_outputs(kSigmoid, saturated());
  EXPECT_FALSE(logits_of_softmax(probabilities).defined());
  EXPECT_FALSE(logits_of_sigmoid(probabilities * 1).defined());
  EXPECT_FALSE(logits_of_sigmoid(saturated()).defined());
  EXPECT_FALSE(logits_of_sigmoid(activate_outputs(Activation("tanh"), saturated())).defined());
}

TEST(Logits, OfProbabilitiesThatWereChangedInPlaceAreNotKnown) {
  const Tensor labels = constant({{0.}, {1.}, {1.}}, float64);
  const BinaryCrossentropy loss;
  const auto halved = [](const Tensor& logits) {
    return activate_outputs(kSigmoid, logits).mul_(0.5);
  };
  {
    const NoGradient no_gradient;
    const Tensor logits = constant({{1.}, {2.}, {0.5}}, float64);
    EXPECT_TRUE(at::equal(loss(labels, halved(logits)), loss(labels, logits.sigmoid() * 0.5)));
  }
  const Tensor logits = constant({{1.}, {2.}, {0.5}}, float64).requires_grad_();
  // The gradient of a sigmoid takes what it was.
  GradientTape tape;
  EXPECT_THROW(tape.gradient(loss(labels, halved(logits)), logits), InvalidArgumentError);
  // Of what nobody recorded.
  const Tensor probabilities = activate_outputs(kSigmoid, logits);
  {
    const NoGradient no_gradient;
    Tensor(probabilities).mul_(0.5);
  }
  EXPECT_FALSE(logits_of_sigmoid(probabilities).defined());
}

// On a thread of its own, which has noted nothing.
TEST(Logits, GoWithTheirProbabilities) {
  std::thread([] {
    const auto memory = [] {
      const Tensor logits = at::randn({64, 3});
      activate_outputs(kSoftmax, logits);
      return logits.storage().getWeakStorageImpl();
    }();
    activate_outputs(kSoftmax, at::randn({1, 3}));
    EXPECT_TRUE(memory.expired());
  }).join();
}

TEST(Logits, OfASoftmaxOfASoftmaxAreProbabilities) {
  const Tensor inner = activate_outputs(kSoftmax, at::randn({2, 3}, at::kDouble));
  EXPECT_TRUE(at::equal(logits_of_softmax(activate_outputs(kSoftmax, inner)), inner));
  const Tensor classes = at::tensor({2, 0}, int64);
  EXPECT_EQ(
      SparseCategoricalCrossentropy()(classes, activate_outputs(kSoftmax, inner)).item<double>(),
      SparseCategoricalCrossentropy({.from_logits = true})(classes, inner * 1).item<double>());
}

TEST(Logits, RememberingChangesNoGradient) {
  const Tensor x = at::randn({4, 5}, at::kDouble).requires_grad_();
  for (const Activation& activation : {kSigmoid, kSoftmax}) {
    GradientTape outer({.persistent = true});
    std::vector<Tensor> seconds;
    for (const Tensor& y : {activate_outputs(activation, x), activation(x)}) {
      GradientTape inner({.persistent = true});
      const Tensor first = inner.gradient((y * y * y).sum(), x);
      seconds.push_back(outer.gradient((first * first).sum(), x));
    }
    EXPECT_TRUE(at::allclose(seconds[0], seconds[1], 1e-12, 1e-12)) << activation.name();
  }
}

TEST(Logits, ALayersOutputsTrainFromSaturation) {
  const keras::layers::Dense layer(1, {.activation = "sigmoid", .dtype = float64});
  const Tensor x = constant({{100.}, {200.}}, float64), labels = constant({{0.}, {0.}}, float64);
  layer(x);
  layer.trainable_variables()[0].assign(constant({{1.}}, float64));
  GradientTape tape;
  const Tensor loss = BinaryCrossentropy()(labels, layer(x));
  EXPECT_EQ(tape.gradient(loss, layer.trainable_variables())[0].item<double>(), 150);
}

}  // namespace
}  // namespace cohort::internal
