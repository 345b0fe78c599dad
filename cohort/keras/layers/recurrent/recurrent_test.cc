// Recurrent layers: dropout, masks, both directions. learned_layers_test.cc has the kernels and
// states, tests/interop compares with TensorFlow's.
#include "cohort/keras/layers/recurrent/recurrent.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/dense.h"
#include "cohort/keras/layers/masking.h"
#include "cohort/keras/layers/recurrent/bidirectional.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Of 2 sequences of 4 steps, padded with zeros: the first has 2 steps, the second 3.
struct Padded {
  Padded() {
    random::set_seed(3);
    values = random::normal({2, 4, 5});
    values.select(0, 0).slice(0, 2).zero_();
    values.select(0, 1).slice(0, 3).zero_();
    mask = numbers({1, 1, 0, 0, 1, 1, 1, 0}, {2, 4}).to(boolean);
  }
  Tensor first() const { return values.slice(0, 0, 1).slice(1, 0, 2); }
  Tensor second() const { return values.slice(0, 1, 2).slice(1, 0, 3); }
  Tensor marked() const { return internal::with_mask(values.clone(), mask); }

  Tensor values;
  Tensor mask;
};

void expect_near(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  EXPECT_THAT(elements(found), Pointwise(DoubleNear(1e-6), elements(expected)));
}

TEST(SimpleRNN, FeedsItsOutputBack) {
  const SimpleRNN layer(1, {.activation = "linear", .return_sequences = true});
  const Tensor x = numbers({1, 2, 3}, {1, 3, 1});
  layer(x);
  layer.set_weights({numbers({1}, {1, 1}), numbers({10}, {1, 1}), numbers({0.5})});
  EXPECT_THAT(elements(layer(x)), ElementsAre(1.5, 17.5, 178.5));
}

TEST(SimpleRNN, KernelAndLoopAgree) {
  const Padded padded;
  const SimpleRNN kernel(3, {.return_sequences = true});
  const auto tanh = activations::Activation([](const Tensor& x) { return x.tanh(); });
  const SimpleRNN loop(3, {.activation = tanh, .return_sequences = true});
  kernel(padded.values);
  loop(padded.values);
  loop.set_weights(kernel.get_weights());
  expect_near(loop(padded.values), kernel(padded.values));
}

template <class Recurrent>
class Masked : public ::testing::Test {};
using Recurrents = ::testing::Types<SimpleRNN, LSTM, GRU>;
TYPED_TEST_SUITE(Masked, Recurrents);

// What is padded has the last output of what is not.
TYPED_TEST(Masked, PassesOverStepsThatDoNotCount) {
  const Padded padded;
  const TypeParam layer(3);
  const Tensor outputs = layer(padded.marked());
  expect_near(outputs.slice(0, 0, 1), layer(padded.first()));
  expect_near(outputs.slice(0, 1, 2), layer(padded.second()));
}

TYPED_TEST(Masked, RepeatsTheOutputAndKeepsTheMask) {
  const Padded padded;
  const TypeParam layer(3, {.return_sequences = true});
  const Tensor outputs = layer(padded.marked());
  EXPECT_EQ(elements(outputs.select(1, 3)[0]), elements(outputs.select(1, 1)[0]));
  EXPECT_TRUE(internal::mask_of(outputs).equal(padded.mask));
  EXPECT_FALSE(internal::mask_of(TypeParam(3)(padded.marked())).defined());
}

TYPED_TEST(Masked, GoesBackwardsOverTheSameSteps) {
  const Padded padded;
  const TypeParam layer(3, {.go_backwards = true});
  expect_near(layer(padded.marked()).slice(0, 0, 1), layer(padded.first()));
}

TYPED_TEST(Masked, StepsBeforeTheFirstThatCountsGiveZeros) {
  const TypeParam layer(3, {.return_sequences = true});
  const Tensor outputs = layer(Masking()(at::cat({at::zeros({1, 2, 5}), at::ones({1, 1, 5})}, 1)));
  EXPECT_THAT(elements(outputs.slice(1, 0, 2)), Each(0));
  expect_near(outputs.slice(1, 2), layer(at::ones({1, 1, 5})));
}

// Units that add up what they are given.
SimpleRNN summing(double dropout, double recurrent_dropout) {
  constexpr int64_t kUnits = 400;
  const SimpleRNN layer(kUnits, {.activation = "linear",
                                 .return_sequences = true,
                                 .dropout = dropout,
                                 .recurrent_dropout = recurrent_dropout});
  layer(at::ones({1, 1, kUnits}));
  layer.set_weights({at::eye(kUnits), at::eye(kUnits), at::zeros({kUnits})});
  return layer;
}

TEST(RecurrentDropout, OfInputsIsThatOfAllSteps) {
  random::set_seed(9);
  const SimpleRNN layer = summing(0.25, 0);
  const Tensor x = at::ones({2, 3, 400});
  const Tensor outputs = layer(x, {.training = true});
  const Tensor first = outputs.select(1, 0);
  EXPECT_TRUE(outputs.select(1, 2).allclose(first * 3));
  EXPECT_FALSE(first[0].equal(first[1]));
  EXPECT_THAT(first.ne(0).sum().item<int64_t>(), AllOf(::testing::Gt(540), ::testing::Lt(660)));
  EXPECT_NEAR(first.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_TRUE(layer(x).select(1, 0).equal(at::ones({2, 400})));
}

TEST(RecurrentDropout, OfTheStateIsThatOfAllSteps) {
  random::set_seed(9);
  const SimpleRNN layer = summing(0, 0.5);
  const Tensor outputs = layer(at::ones({1, 3, 400}), {.training = true}).squeeze(0);
  EXPECT_TRUE(outputs[0].equal(at::ones({400})));
  // Kept: 1 + 2 * 1, then 1 + 2 * 3; else always 1.
  const Tensor kept = outputs[1].eq(3);
  EXPECT_TRUE(outputs[1].masked_select(kept.logical_not()).eq(1).all().item<bool>());
  EXPECT_TRUE(outputs[2].eq(7).equal(kept));
  EXPECT_THAT(kept.sum().item<int64_t>(), AllOf(::testing::Gt(150), ::testing::Lt(250)));
}

// With everything kept, the products by gate are those of all gates at once.
template <class Recurrent, class Options>
void expect_tiny_dropout_changes_nothing(Options options) {
  const Padded padded;
  options.return_sequences = true;
  const Recurrent plain(3, options);
  options.recurrent_dropout = 1e-30;
  const Recurrent dropping(3, options);
  plain(padded.values);
  dropping(padded.values);
  dropping.set_weights(plain.get_weights());
  expect_near(dropping(padded.values, {.training = true}), plain(padded.values));
}

TEST(RecurrentDropout, ThatDropsNothingChangesNothing) {
  expect_tiny_dropout_changes_nothing<SimpleRNN>(SimpleRNNOptions{});
  expect_tiny_dropout_changes_nothing<LSTM>(LSTMOptions{});
  expect_tiny_dropout_changes_nothing<GRU>(GRUOptions{});
  expect_tiny_dropout_changes_nothing<GRU>(GRUOptions{.reset_after = false});
}

TEST(RecurrentDropout, DropsAllAtRateOne) {
  const LSTM layer(3, {.dropout = 1, .recurrent_dropout = 1});
  const Tensor x = random::normal({2, 4, 5});
  layer(x);
  expect_near(layer(x, {.training = true}), layer(at::zeros({2, 4, 5}), {.training = true}));
}

TEST(RecurrentDropout, RefusesOtherRates) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { LSTM(3, {.dropout = 1.5}); }),
              AllOf(HasSubstr("LSTM: dropout is 1.5"), HasSubstr("[0, 1]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { GRU(3, {.recurrent_dropout = -1}); }),
              HasSubstr("GRU: recurrent_dropout"));
}

// Two halves of sequences, one batch after the other, come to what the whole comes to.
template <class Recurrent, class Options>
void expect_to_go_on(Options options) {
  options.return_sequences = true;
  const Recurrent whole(3, options);
  options.stateful = true;
  const Recurrent halves(3, options);
  const Tensor x = random::normal({2, 6, 5});
  const Tensor expected = whole(x);
  halves(x);
  halves.set_weights(whole.get_weights());
  for (int pass = 0; pass < 2; ++pass) {
    halves.reset_states();
    expect_near(halves(x.slice(1, 0, 2)), expected.slice(1, 0, 2));
    expect_near(halves(x.slice(1, 2)), expected.slice(1, 2));
  }
}

TEST(StatefulLayers, GoOnWhereTheBatchBeforeHasStopped) {
  expect_to_go_on<SimpleRNN>(SimpleRNNOptions{});
  expect_to_go_on<LSTM>(LSTMOptions{});
  expect_to_go_on<GRU>(GRUOptions{});
  expect_to_go_on<GRU>(GRUOptions{.reset_after = false});
}

TEST(StatefulLayers, ModelsAndWrappersForgetToo) {
  const Sequential model({Bidirectional(GRU(3, {.stateful = true})), Dense(1)});
  const Tensor x = random::normal({2, 4, 5});
  const Tensor first = model(x);
  expect_near(model(at::zeros({0, 4, 5})),
              at::zeros({0, 1}));  // a replica without rows keeps its state
  EXPECT_NE(elements(model(x)), elements(first));
  model.reset_states();
  expect_near(model(x), first);
}

TEST(StatefulLayers, GradientsEndAtTheBeginningOfABatch) {
  const SimpleRNN layer(1, {.activation = "linear", .stateful = true});
  const Tensor x = numbers({1}, {1, 1, 1});
  layer(x);
  layer.set_weights({numbers({1}, {1, 1}), numbers({10}, {1, 1}), numbers({0})});
  layer.reset_states();
  GradientTape tape({.persistent = true});
  const Tensor first = layer(x);
  const Tensor second = layer(x);
  EXPECT_THAT(elements(second), ElementsAre(11));
  const Variable kernel = layer.trainable_variables()[0];
  EXPECT_THAT(elements(tape.gradient(second, kernel)), ElementsAre(1));
}

TEST(StatefulLayers, EachReplicaGoesOnWithItsOwnRows) {
  const distribute::MirroredStrategy strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model({SimpleRNN(1, {.activation = "linear", .stateful = true})});
  model.compile({.optimizer = optimizers::SGD(0), .loss = "mse"});
  const Tensor x = numbers({1, 2, 3, 4}, {4, 1, 1});
  model(x.slice(0, 0, 2));
  model.set_weights({numbers({1}, {1, 1}), numbers({10}, {1, 1}), numbers({0})});
  const auto predicted = [&] { return elements(model.predict(x, {.verbose = 0}).tensor()); };
  model.reset_states();
  EXPECT_THAT(predicted(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(predicted(), ElementsAre(11, 22, 33, 44));
  model.reset_states();
  EXPECT_THAT(predicted(), ElementsAre(1, 2, 3, 4));
}

TEST(StatefulLayers, RefuseBatchesOfAnotherSize) {
  const GRU layer(3, {.stateful = true, .name = "goes_on"});
  layer(at::ones({4, 2, 5}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({3, 2, 5}));
              }),
              AllOf(HasSubstr("'goes_on'"), HasSubstr("a batch of 3 rows after one of 4"),
                    HasSubstr("reset_states")));
  layer.reset_states();
  EXPECT_THAT(layer(at::ones({3, 2, 5})).sizes(), ElementsAre(3, 3));
}

TEST(StatefulLayers, AskingForTheFormOfOutputsChangesNothing) {
  const GRU layer(3, {.stateful = true});
  const Tensor x = random::normal({2, 4, 5});
  const Tensor first = layer(x);
  layer(keras::Input({4, 5}));
  layer.reset_states();
  layer(keras::Input({4, 5}));
  expect_near(layer(x), first);
}

TEST(Bidirectional, TakesALayerForTheWayBack) {
  const Padded padded;
  const LSTM forward(3, {.return_sequences = true});
  const GRU backward(2, {.return_sequences = true, .go_backwards = true});
  const Bidirectional both(forward, {.backward_layer = backward});
  EXPECT_THAT(both(padded.values).sizes(), ElementsAre(2, 4, 5));
  forward(padded.values);
  backward(padded.values);
  std::vector<Tensor> weights = forward.get_weights();
  for (const Tensor& weight : backward.get_weights()) weights.push_back(weight);
  both.set_weights(weights);
  expect_near(both(padded.values),
              at::cat({forward(padded.values), backward(padded.values).flip(1)}, -1));
}

TEST(Bidirectional, TakesStatesOfTwoClasses) {
  const Bidirectional both(LSTM(3), {.backward_layer = GRU(3, {.go_backwards = true})});
  const Tensor x = random::normal({2, 4, 5});
  const Tensor none = at::zeros({2, 3});
  expect_near(both(tuple(x, none, none, none)).tensor(), both(x));
  EXPECT_NE(elements(both(tuple(x, none, none, none + 1)).tensor()), elements(both(x)));
}

TEST(Bidirectional, JoinsBothDirections) {
  const Padded padded;
  const GRU forward(3, {.return_sequences = true});
  const GRU backward(3, {.return_sequences = true, .go_backwards = true});
  const Bidirectional both(forward);
  const Tensor joined = both(padded.values);
  EXPECT_THAT(joined.sizes(), ElementsAre(2, 4, 6));
  forward(padded.values);
  backward(padded.values);
  std::vector<Tensor> weights = forward.get_weights();
  for (const Tensor& weight : backward.get_weights()) weights.push_back(weight);
  both.set_weights(weights);
  const Tensor ahead = forward(padded.values);
  const Tensor back = backward(padded.values).flip(1);
  expect_near(both(padded.values), at::cat({ahead, back}, -1));
  const auto merged = [&](const char* mode) {
    const Bidirectional layer(forward, {.merge_mode = mode});
    layer(padded.values);
    layer.set_weights(weights);
    return layer(padded.values);
  };
  expect_near(merged("sum"), ahead + back);
  expect_near(merged("mul"), ahead * back);
  expect_near(merged("ave"), (ahead + back) / 2);
}

TEST(Bidirectional, NamesItsLayers) {
  const Bidirectional both(LSTM(3, {.name = "words"}), {.name = "sides"});
  both(at::ones({1, 2, 4}));
  std::vector<std::string> names;
  for (const Variable& variable : both.variables()) names.push_back(variable.name());
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(both->children()[0].name, "forward_layer");
  EXPECT_EQ(both->children()[0].layer->name(), "forward_words");
  EXPECT_EQ(both->children()[1].layer->name(), "backward_words");
}

TEST(Bidirectional, ReturnsAndTakesStatesOfBoth) {
  const Bidirectional both(LSTM(3, {.return_state = true}), {.merge_mode = std::nullopt});
  const Structure outputs = both(Structure(random::normal({2, 4, 5})));
  ASSERT_EQ(outputs.size(), 6u);
  EXPECT_EQ(elements(outputs[0].tensor()), elements(outputs[2].tensor()));  // h of the first
  EXPECT_EQ(elements(outputs[1].tensor()), elements(outputs[4].tensor()));
  const Tensor x = random::normal({2, 4, 5});
  const Structure again = both(tuple(x, outputs[2], outputs[3], outputs[4], outputs[5]));
  EXPECT_NE(elements(again[0].tensor()), elements(both(Structure(x))[0].tensor()));
}

TEST(Bidirectional, GivesZerosWhereStepsDoNotCount) {
  const Padded padded;
  const Bidirectional both(SimpleRNN(3, {.return_sequences = true}));
  const Tensor outputs = both(padded.marked());
  EXPECT_THAT(elements(outputs[0].slice(0, 2)), Each(0));
  expect_near(outputs.slice(0, 0, 1).slice(1, 0, 2), both(padded.first()));
  EXPECT_TRUE(internal::mask_of(outputs).equal(padded.mask));
}

TEST(Bidirectional, SaysWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Bidirectional{LayerHandle(Masking())}; }),
              HasSubstr("of class Masking"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Bidirectional(GRU(3), {.merge_mode = "mean"}); }),
              AllOf(HasSubstr("'mean'"), HasSubstr("'ave'")));
  const Bidirectional both(GRU(3), {.name = "sides"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                both(tuple(at::ones({1, 2, 4}), at::ones({1, 3})));
              }),
              HasSubstr("'sides'"));
  const auto refused = [](const GRUOptions& backward) {
    return thrown<InvalidArgumentError>(
        [&] { Bidirectional(LSTM(3, {.name = "ahead"}), {.backward_layer = GRU(3, backward)}); });
  };
  EXPECT_THAT(refused({.name = "back"}),
              AllOf(HasSubstr("'ahead' and the backward_layer 'back' go the same way")));
  EXPECT_THAT(refused({.return_sequences = true, .go_backwards = true, .name = "back"}),
              HasSubstr("return_sequences is false of 'ahead' and true of the backward_layer"));
}

TEST(Recurrent, OtherFeaturesThanItWasBuiltForNameTheLayer) {
  for (const LayerHandle& layer :
       {LayerHandle(LSTM(2, {.name = "r"})), LayerHandle(GRU(2, {.name = "r"})),
        LayerHandle(SimpleRNN(2, {.name = "r"}))}) {
    layer(at::ones({1, 2, 3}));
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  layer(at::ones({1, 2, 4}));
                }),
                AllOf(HasSubstr("'r' was built for 3 features"), HasSubstr("[1,2,4]")));
  }
}

}  // namespace
}  // namespace cohort::keras::layers
