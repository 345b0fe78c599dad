// Conv1D, pooling of sequences, LSTM, GRU, MultiHeadAttention and the merging layers; tests/interop
// compares them with TensorFlow's.
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_folder.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(Conv1D, SlidesOverTheSteps) {
  const Tensor x = numbers({1, 2, 3, 4}, {1, 4, 1});
  const auto convolved = [&](const Conv1DOptions& options) {
    const Conv1D layer(1, 2, options);
    layer(x);
    layer.set_weights({numbers({1, 10}, {2, 1, 1}), numbers({0})});
    return elements(layer(x));
  };
  EXPECT_THAT(convolved({}), ElementsAre(21, 32, 43));
  EXPECT_THAT(convolved({.padding = "same"}), ElementsAre(21, 32, 43, 4));
  EXPECT_THAT(convolved({.padding = "causal"}), ElementsAre(10, 21, 32, 43));
  EXPECT_THAT(convolved({.strides = 2}), ElementsAre(21, 43));
  EXPECT_THAT(convolved({.dilation_rate = 2}), ElementsAre(31, 42));
  EXPECT_THAT(Conv1D(3, 2)(at::zeros({0, 4, 1})).sizes(), ElementsAre(0, 3, 3));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv1D(3, 2, {.padding = "full"}); }),
              HasSubstr("'full'"));
}

TEST(Pooling1D, TakesWindowsOfSteps) {
  const Tensor x = numbers({1, 5, 3, 2, 8}, {1, 5, 1});
  EXPECT_THAT(elements(MaxPooling1D()(x)), ElementsAre(5, 3));
  EXPECT_THAT(elements(AveragePooling1D()(x)), ElementsAre(3, 2.5));
  EXPECT_THAT(elements(AveragePooling1D(2, {.padding = "same"})(x)), ElementsAre(3, 2.5, 8));
  EXPECT_THAT(elements(MaxPooling1D(3, {.strides = 1})(x)), ElementsAre(5, 5, 8));
  EXPECT_THAT(elements(GlobalMaxPooling1D()(x)), ElementsAre(8));
  EXPECT_THAT(elements(GlobalMaxPooling2D()(x.unsqueeze(1))), ElementsAre(8));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MaxPooling1D(0); }), HasSubstr("MaxPooling1D"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                AveragePooling1D(5, {.name = "shrinks"})(at::ones({2, 4, 3}));
              }),
              AllOf(HasSubstr("layer 'shrinks'"), HasSubstr("at least [5]"), HasSubstr("[2,4,3]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Conv1D(2, 3, {.dilation_rate = 2, .name = "looks"})(at::ones({2, 4, 3}));
              }),
              AllOf(HasSubstr("layer 'looks'"), HasSubstr("at least [5]"), HasSubstr("[2,4,3]")));
}

TEST(Merging, ElementByElement) {
  const Structure two = tuple(numbers({1, 6}, {1, 2}), numbers({3, 2}, {1, 2}));
  const auto merged = [&](const LayerHandle& layer) { return elements(layer(two).tensor()); };
  EXPECT_THAT(merged(Subtract()), ElementsAre(-2, 4));
  EXPECT_THAT(merged(Multiply()), ElementsAre(3, 12));
  EXPECT_THAT(merged(Average()), ElementsAre(2, 4));
  EXPECT_THAT(merged(Maximum()), ElementsAre(3, 6));
  EXPECT_THAT(merged(Minimum()), ElementsAre(1, 2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                Subtract({.name = "minus"})(tuple(at::ones({1}), at::ones({1}), at::ones({1})));
              }),
              HasSubstr("'minus'"));
}

// The formulas of libtorch's kernels and of the loop, which serves other activations, agree.
template <class Layer, class Options>
void expect_fused_is_stepwise(Options options) {
  random::set_seed(5);
  options.return_sequences = true;
  options.bias_initializer = initializers::RandomNormal();
  const Layer fused(3, options);
  // The same function by another name, which the kernels do not know.
  options.activation = activations::Activation([](const Tensor& x) { return x.tanh(); });
  const Layer stepwise(3, options);
  const Tensor x = random::normal({2, 4, 5});
  fused(x);
  stepwise(x);
  stepwise.set_weights(fused.get_weights());
  EXPECT_THAT(elements(stepwise(x)), Pointwise(DoubleNear(1e-5), elements(fused(x))));
}

TEST(LSTM, KernelsAndLoopAgree) {
  expect_fused_is_stepwise<LSTM>(LSTMOptions{});
  expect_fused_is_stepwise<LSTM>(LSTMOptions{.use_bias = false});
}

TEST(GRU, KernelsAndLoopAgree) {
  expect_fused_is_stepwise<GRU>(GRUOptions{});
  expect_fused_is_stepwise<GRU>(GRUOptions{.use_bias = false});
}

TEST(LSTM, ReturnsSequencesAndStates) {
  const LSTM layer(3, {.return_sequences = true, .return_state = true});
  const Tensor x = random::normal({2, 4, 5});
  const Structure outputs = layer(Structure(x));
  EXPECT_THAT(outputs[0].tensor().sizes(), ElementsAre(2, 4, 3));
  EXPECT_EQ(elements(outputs[0].tensor().select(1, 3)), elements(outputs[1].tensor()));
  EXPECT_THAT(outputs[2].tensor().sizes(), ElementsAre(2, 3));
  // From a state in the middle it goes on as if there were no gap.
  const Structure first = layer(Structure(x.slice(1, 0, 2)));
  const Structure second = layer(tuple(x.slice(1, 2), first[1].tensor(), first[2].tensor()));
  EXPECT_THAT(elements(second[1].tensor()),
              Pointwise(DoubleNear(1e-6), elements(outputs[1].tensor())));
}

TEST(LSTM, TheForgetGateStartsOpen) {
  const LSTM layer(2);
  layer(at::ones({1, 1, 3}));
  EXPECT_THAT(elements(layer.get_weights()[2]), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
}

TEST(Recurrent, GoesBackwards) {
  const GRU forwards(3);
  const GRU backwards(3, {.go_backwards = true});
  const Tensor x = random::normal({2, 4, 5});
  forwards(x);
  backwards(x);
  backwards.set_weights(forwards.get_weights());
  EXPECT_EQ(elements(backwards(x)), elements(forwards(x.flip(1))));
}

TEST(Recurrent, WeightsAreFoundTrainedAndSaved) {
  const GRU layer(3, {.reset_after = false, .kernel_regularizer = regularizers::L2(0.1)});
  const Tensor x = random::normal({2, 4, 5});
  GradientTape tape;
  const Tensor loss = layer(x).square().sum();
  ASSERT_EQ(layer.trainable_variables().size(), 3u);
  EXPECT_EQ(layer.losses().size(), 1u);
  for (const Tensor& gradient : tape.gradient(loss, layer.trainable_variables())) {
    EXPECT_GT(gradient.abs().sum().item<double>(), 0);
  }
  const internal::TemporaryFolder folder;
  const std::string path = train::Checkpoint({{"layer", layer}}).write(folder / "gru");
  const GRU restored(3, {.reset_after = false});
  train::Checkpoint({{"layer", restored}}).read(path);
  EXPECT_EQ(elements(restored(x)), elements(layer(x)));
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { LSTM(0); }), HasSubstr("units is 0"));
  const LSTM layer(2, {.name = "lstm"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({2, 3}));
              }),
              AllOf(HasSubstr("'lstm'"), HasSubstr("[2,3]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({2, 0, 3}));
              }),
              HasSubstr("one step or more"));
}

TEST(MultiHeadAttention, ACausalMaskHidesTheFuture) {
  const MultiHeadAttention layer(2, 4, {.use_causal_mask = true});
  const Tensor x = random::normal({1, 5, 6});
  const auto attend = [&](const Tensor& input) { return layer(tuple(input, input)).tensor(); };
  const Tensor all = attend(x);
  EXPECT_THAT(all.sizes(), ElementsAre(1, 5, 6));
  EXPECT_THAT(elements(attend(x.slice(1, 0, 3))),
              Pointwise(DoubleNear(1e-5), elements(all.slice(1, 0, 3))));
}

TEST(MultiHeadAttention, AMaskHidesKeys) {
  const MultiHeadAttention layer(2, 4, {.value_dim = 3, .output_dim = 7});
  const Tensor query = random::normal({2, 3, 6});
  const Tensor value = random::normal({2, 4, 5});
  const Tensor mask = numbers({1, 1, 0, 0}, {1, 1, 4}).expand({2, 3, 4});
  const Tensor hidden = layer(tuple(query, value, value, mask)).tensor();
  EXPECT_THAT(hidden.sizes(), ElementsAre(2, 3, 7));
  EXPECT_THAT(elements(layer(tuple(query, value.slice(1, 0, 2))).tensor()),
              Pointwise(DoubleNear(1e-5), elements(hidden)));
  for (const Tensor& same :
       {mask[0], mask.slice(0, 0, 1), mask.unsqueeze(1), mask.unsqueeze(1).expand({2, 2, 3, 4})}) {
    EXPECT_TRUE(at::equal(layer(tuple(query, value, value, same)).tensor(), hidden))
        << same.sizes();
  }
  for (const Tensor& other :
       {at::ones({2, 3, 3}), at::ones({2, 3, 3, 4}), at::ones({1, 1, 1, 3, 4})}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer(tuple(query, value, value, other)); }),
                HasSubstr("[batch, queries, keys], here [2,3,4]"));
  }
  EXPECT_EQ(layer.variables().size(), 8u);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MultiHeadAttention(0, 4); }),
              HasSubstr("num_heads is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer(Structure(query)); }),
              HasSubstr("queries and values"));
}

TEST(Layers, OfSequencesWorkInFunctionalModels) {
  const auto input = Input({8, 3});
  const auto states = LSTM(4, {.return_sequences = true})(Conv1D(6, 3)(input));
  const Functional model(input, GRU(2)(MaxPooling1D()(BatchNormalization()(states))));
  EXPECT_THAT(model(random::normal({5, 8, 3}), {.training = true}).sizes(), ElementsAre(5, 2));
  EXPECT_THAT(model(at::zeros({0, 8, 3})).sizes(), ElementsAre(0, 2));
}

TEST(Orthogonal, HasOrthogonalColumns) {
  const Tensor tall = initializers::Orthogonal({.gain = 2})({6, 3}, float32);
  EXPECT_THAT(elements(tall.t().matmul(tall)),
              Pointwise(DoubleNear(1e-5), elements(at::eye(3) * 4)));
  const Tensor wide = initializers::Initializer("orthogonal")({2, 2, 8}, float64).reshape({4, 8});
  EXPECT_THAT(elements(wide.matmul(wide.t())), Pointwise(DoubleNear(1e-9), elements(at::eye(4))));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { initializers::Orthogonal()({3}, float32); }),
              HasSubstr("[3]"));
}

TEST(MultiHeadAttention, OtherFeaturesThanItWasBuiltForNameTheLayer) {
  const MultiHeadAttention attention(1, 2, {.name = "a"});
  attention(tuple(at::ones({1, 2, 3}), at::ones({1, 2, 5})));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                attention(tuple(at::ones({1, 2, 3}), at::ones({1, 2, 4})));
              }),
              AllOf(HasSubstr("'a' was built for"), HasSubstr("3, 5 and 5"), HasSubstr("[1,2,4]")));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { MultiHeadAttention(1, 2)(tuple(at::ones({}), at::ones({}))); }),
              HasSubstr("rank 2 or more"));
}

}  // namespace
}  // namespace cohort::keras::layers
