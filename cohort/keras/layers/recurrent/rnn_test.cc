// RNN of known cells and of one's own, stacks, TimeDistributed: what tests/interop, which compares
// them with TensorFlow's, cannot see.
#include "cohort/keras/layers/recurrent/rnn.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/layers/recurrent/abstract_rnn_cell.h"
#include "cohort/keras/layers/recurrent/bidirectional.h"
#include "cohort/keras/layers/recurrent/recurrent.h"
#include "cohort/keras/layers/recurrent/rnn_cells.h"
#include "cohort/keras/layers/recurrent/time_distributed.h"
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

// Adds up what it is given, times a weight. A state more than there are outputs says how many steps
// there were.
class Summing final : public AbstractRNNCell {
 public:
  std::optional<Config> get_config() const override { return Config(); }
  std::vector<Shape> state_size() const override { return {{1}, {1}}; }
  std::shared_ptr<AbstractRNNCell> clone() const override { return std::make_shared<Summing>(); }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    EXPECT_EQ(input_shapes.size(), 3U);
    kernel_ = add_weight("kernel", {input_shapes[0].back(), 1}, {.initializer = "ones"});
  }
  Step step(const Tensor& x, const std::vector<Tensor>& states, const CallOptions&) override {
    const Tensor sum = states[0] + x.matmul(kernel_.value());
    return {sum, {sum, states[1] + 1}};
  }

 private:
  Variable kernel_;
};

class Broken final : public AbstractRNNCell {
 public:
  std::vector<Shape> state_size() const override { return {{1}}; }

 protected:
  Step step(const Tensor& x, const std::vector<Tensor>&, const CallOptions&) override {
    return {x, {}};
  }
};

TEST(RNN, OfACellOfOnesOwn) {
  const RNN layer(std::make_shared<Summing>(), {.return_sequences = true, .return_state = true});
  const Structure made = layer(Structure(numbers({1, 2, 3}, {1, 3, 1})));
  EXPECT_THAT(elements(made[0].tensor()), ElementsAre(1, 3, 6));
  EXPECT_THAT(elements(made[1].tensor()), ElementsAre(6));
  EXPECT_THAT(elements(made[2].tensor()), ElementsAre(3));
  const Structure from =
      layer(tuple(numbers({1, 2}, {1, 2, 1}), numbers({10}, {1, 1}), at::ones({1, 1})));
  EXPECT_THAT(elements(from[0].tensor()), ElementsAre(11, 13));
  EXPECT_THAT(elements(from[2].tensor()), ElementsAre(3));
}

TEST(RNN, PassesOverStepsThatAreMasked) {
  const Tensor x = internal::with_mask(numbers({1, 2, 3, 4}, {1, 4, 1}),
                                       numbers({0, 1, 0, 1}, {1, 4}).to(boolean));
  const auto outputs = [&](const RNNOptions& options) {
    return elements(RNN(std::make_shared<Summing>(), options)(x));
  };
  EXPECT_THAT(outputs({.return_sequences = true}), ElementsAre(0, 2, 2, 6));
  EXPECT_THAT(outputs({.return_sequences = true, .zero_output_for_mask = true}),
              ElementsAre(0, 2, 0, 6));
  EXPECT_THAT(outputs({.return_sequences = true, .go_backwards = true}), ElementsAre(4, 4, 6, 6));
  EXPECT_THAT(outputs({}), ElementsAre(6));
}

TEST(RNN, IsStatefulPerReplica) {
  const distribute::MirroredStrategy strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model({RNN(std::make_shared<Summing>(), {.stateful = true})});
  model.compile({.optimizer = optimizers::SGD(0), .loss = "mse"});
  const Tensor x = numbers({1, 2, 3, 4}, {4, 1, 1});
  const auto predicted = [&] { return elements(model.predict(x, {.verbose = 0}).tensor()); };
  predicted();
  model.reset_states();
  EXPECT_THAT(predicted(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(predicted(), ElementsAre(2, 4, 6, 8));
}

// In a model, where it is a plan as the layer is.
TEST(RNN, OfAnLstmCellIsTheLstmLayer) {
  random::set_seed(3);
  const Tensor x = random::normal({3, 5, 4});
  const LSTM lstm(6, {.return_sequences = true});
  const RNN rnn(LSTMCell(6), {.return_sequences = true});
  const Sequential first({lstm}), second({rnn});
  first(x);
  second(x);
  second.set_weights(first.get_weights());
  EXPECT_TRUE(first(x).equal(second(x)));
  EXPECT_THAT(second.explain(), HasSubstr("one plan"));
  EXPECT_TRUE(lstm(x).equal(rnn(x)));
}

TEST(RNN, DropsTheSameElementsAtAllSteps) {
  random::set_seed(4);
  constexpr int64_t kUnits = 300;
  const RNN layer({SimpleRNNCell(kUnits, {.activation = "linear", .dropout = 0.5})},
                  {.return_sequences = true});
  const Tensor x = at::ones({1, 3, kUnits});
  layer(x);
  layer.set_weights({at::eye(kUnits), at::zeros({kUnits, kUnits}), at::zeros({kUnits})});
  const Tensor outputs = layer(x, {.training = true});
  EXPECT_TRUE(outputs.select(1, 0).equal(outputs.select(1, 2)));
  EXPECT_NEAR((outputs == 0).to(float32).mean().item<double>(), 0.5, 0.1);
  EXPECT_THAT(elements(layer(x)), Each(1));
}

TEST(RNN, SaysWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { RNN(Dense(3, {.name = "d"})); }),
              AllOf(HasSubstr("RNN takes a cell"), HasSubstr("'d' of class Dense")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { StackedRNNCells({}); }), HasSubstr("no cells"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { LSTMCell(0); }), HasSubstr("LSTMCell: units is 0"));
  const RNN broken(std::make_shared<Broken>());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                broken(at::ones({1, 2, 3}));
              }),
              AllOf(HasSubstr("Broken"), HasSubstr("has 1 states"), HasSubstr("gave 0")));
  const RNN layer({LSTMCell(2), std::make_shared<Summing>()}, {.name = "r"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({1, 2}));
              }),
              AllOf(HasSubstr("'r'"), HasSubstr("4 initial states")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Bidirectional(RNN(std::make_shared<Broken>())); }),
              HasSubstr("override AbstractRNNCell::clone"));
}

TEST(RNN, OfOwnCellsIsSaved) {
  const SymbolicTensor x = Input({3, 2});
  const SymbolicStructure made =
      RNN({GRUCell(2), std::make_shared<Summing>()}, {.return_state = true})(SymbolicStructure(x));
  const SymbolicTensor both = Bidirectional(RNN(std::make_shared<Summing>()))(x);
  const Functional model(x, {made[0], made[3], both});
  const ModelHandle copy = models::model_from_json(
      model.to_json(), {{"Summing", [](const Config&) { return std::make_shared<Summing>(); }}});
  copy.set_weights(model.get_weights());
  const Tensor data = random::normal({2, 3, 2});
  const Structure ours = model(Structure(data)), theirs = copy(Structure(data));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(ours[i].tensor().equal(theirs[i].tensor()));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { models::model_from_json(model.to_json()); }),
              HasSubstr("Summing"));
}

TEST(AbstractRNNCell, IsCalledForOneStep) {
  const auto cell = std::make_shared<Summing>();
  const Structure made =
      (*cell)(tuple(numbers({2}, {1, 1}), numbers({3}, {1, 1}), at::ones({1, 1})));
  EXPECT_THAT(elements(made[0].tensor()), ElementsAre(5));
  EXPECT_THAT(elements(made[2].tensor()), ElementsAre(2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                (*cell)(tuple(at::ones({1, 1}), at::ones({1, 1})));
              }),
              HasSubstr("2 states"));
  const LSTMCell lstm(3);
  const LSTM layer(3, {.return_state = true});
  const Tensor x = random::normal({2, 1, 4});
  const Structure whole = layer(Structure(x));
  const Tensor zeros = at::zeros({2, 3});
  lstm(tuple(x.select(1, 0), zeros, zeros));
  lstm.set_weights(layer.get_weights());
  const Structure step = lstm(tuple(x.select(1, 0), zeros, zeros));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::allclose(step[i].tensor(), whole[i].tensor()));
  }
}

TEST(TimeDistributed, AppliesALayerToEachStep) {
  random::set_seed(3);
  const Tensor x = random::normal({2, 3, 4, 5});
  const LSTM inner(3);
  const TimeDistributed layer(inner);
  const Tensor outputs = layer(x);
  EXPECT_THAT(outputs.sizes(), ElementsAre(2, 3, 3));
  EXPECT_TRUE(at::allclose(outputs.select(1, 2), inner(x.select(1, 2)), 1e-4, 1e-6));
  EXPECT_EQ(layer.trainable_variables().size(), 3U);
  EXPECT_THAT(layer(x.slice(0, 0, 0)).sizes(), ElementsAre(0, 3, 3));
}

TEST(TimeDistributed, TakesMasksApart) {
  const Tensor ids = numbers({1, 2, 0, 3, 0, 0, 0, 0, 0, 1, 1, 1}, {2, 2, 3}).to(int64);
  const Sequential model({TimeDistributed(Embedding(4, 2, {.mask_zero = true})),
                          TimeDistributed(GRU(3)), TimeDistributed(Dense(2))});
  const Tensor outputs = model(ids);
  const Tensor mask = internal::mask_of(outputs);
  ASSERT_TRUE(mask.defined());
  EXPECT_THAT(elements(mask.to(float32)), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(mask.sizes(), ElementsAre(2, 2));
}

TEST(TimeDistributed, SaysWhatDoesNotFit) {
  const TimeDistributed layer(Dense(2), {.name = "t"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({2, 3}));
              }),
              AllOf(HasSubstr("layer 't' takes [batch, steps, ..]"), HasSubstr("[2,3]")));
  const TimeDistributed pairs{Concatenate()};
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                pairs(tuple(at::ones({2, 3, 4}), at::ones({2, 2, 4})));
              }),
              HasSubstr("as many steps"));
  const TimeDistributed whole(Lambda([](const Tensor& x) { return x.mean(); }), {.name = "t"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                whole(at::ones({2, 3, 4}));
              }),
              AllOf(HasSubstr("layer 't' gives each of 6 steps"), HasSubstr("of shape []")));
}

TEST(RecurrentModels, OfTwoReplicasTrainAsThatOfOne) {
  const auto losses = [](int replicas) {
    random::set_seed(6);
    const distribute::MirroredStrategy strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model(
        {Input({4, 3}), RNN({GRUCell(4), std::make_shared<Summing>()}, {.return_sequences = true}),
         TimeDistributed(Dense(2)), RNN(LSTMCell(1))});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const Tensor data = random::RandomGenerator::from_seed(2).normal({8, 4, 3});
    return model.fit(data, data.sum({1, 2}),
                     {.batch_size = 4, .epochs = 2, .verbose = 0, .shuffle = false})["loss"];
  };
  EXPECT_THAT(losses(2), Pointwise(DoubleNear(1e-5), losses(1)));
}

}  // namespace
}  // namespace cohort::keras::layers
