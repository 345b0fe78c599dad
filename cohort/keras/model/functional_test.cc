#include "cohort/keras/model/functional.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/layers.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Symbolic, LayersInferShapesAndBuild) {
  const SymbolicTensor image = Input({28, 28, 1});
  EXPECT_THAT(image.shape(), ElementsAre(kUnknownDim, 28, 28, 1));
  const layers::Conv2D conv(4, 3);
  const SymbolicTensor features = conv(image);
  EXPECT_THAT(features.shape(), ElementsAre(kUnknownDim, 26, 26, 4));
  EXPECT_TRUE(conv.built());
  EXPECT_THAT(layers::Flatten()(features).shape(), ElementsAre(kUnknownDim, 26 * 26 * 4));
}

TEST(Symbolic, OpenDimensionsStayOpen) {
  const SymbolicTensor y = layers::Conv2D(4, 3)(Input({kUnknownDim, 28, 1}));
  EXPECT_THAT(y.shape(), ElementsAre(kUnknownDim, kUnknownDim, 26, 4));
}

TEST(Symbolic, TracingLeavesNoLosses) {
  const layers::Dense dense(2, {.activity_regularizer = regularizers::L2(1)});
  dense(Input({3}));
  EXPECT_THAT(dense.losses(), SizeIs(0));
}

TEST(Functional, RunsAGraph) {
  const SymbolicTensor x = Input({3});
  const auto hidden = layers::Dense(4, {.activation = "relu"})(x);
  const Functional model(x, layers::Dense(2)(hidden));
  EXPECT_TRUE(model.built());
  EXPECT_THAT(model.variables(), SizeIs(4));
  EXPECT_THAT(model(at::ones({5, 3})).sizes(), ElementsAre(5, 2));
}

TEST(Functional, TakesSeveralInputs) {
  const SymbolicTensor a = Input({2}, {.name = "a"});
  const SymbolicTensor b = Input({1}, {.name = "b"});
  const Functional model({a, b}, layers::Concatenate()({b, a}));
  const Structure y = model(tuple(numbers({1, 2}, {1, 2}), numbers({3}, {1, 1})));
  EXPECT_THAT(elements(y.tensor()), ElementsAre(3, 1, 2));
}

TEST(Functional, ADictOfOtherKeysThanTheInputsNamesIsNotTakenByPosition) {
  const SymbolicTensor a = Input({1}, {.name = "a"});
  const SymbolicTensor b = Input({1}, {.name = "b"});
  const Functional model({a, b}, layers::Subtract()({a, b}));
  const Tensor one = numbers({1}, {1, 1});
  const Tensor three = numbers({3}, {1, 1});
  EXPECT_THAT(elements(model(dict({{"b", one}, {"a", three}})).tensor()), ElementsAre(2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(dict({{"b", one}, {"A", three}}));
              }),
              AllOf(HasSubstr("by their names, 'a', 'b', or in their order"),
                    HasSubstr("got a dict with keys 'b', 'A'")));
  const Functional single(a, layers::Dense(1)(a));
  EXPECT_EQ(single(dict({{"other", one}})).tensor().numel(), 1) << "nothing can be mixed up";
}

TEST(Functional, DictsAreMatchedByKey) {
  const SymbolicTensor a = Input({1});
  const SymbolicTensor b = Input({1});
  const auto sum = layers::Add()({a, b});
  const Functional model(SymbolicStructure::make_dict({{"a", a}, {"b", b}}),
                         SymbolicStructure::make_dict({{"b", b}, {"sum", SymbolicStructure(sum)}}));
  const Structure y = model(dict({{"b", numbers({10}, {1, 1})}, {"a", numbers({1}, {1, 1})}}));
  EXPECT_THAT(elements(y["sum"].tensor()), ElementsAre(11));
  EXPECT_THAT(elements(y["b"].tensor()), ElementsAre(10));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(dict({{"a", numbers({1}, {1, 1})}}));
              }),
              HasSubstr("'b'"));
}

TEST(Functional, SharesLayersAndOutputs) {
  const SymbolicTensor x = Input({3});
  const layers::Dense shared(3);
  const SymbolicTensor once = shared(x);
  const Functional model(x, {once, shared(once)});
  EXPECT_THAT(model.variables(), SizeIs(2));
  const Structure y = model(Structure(at::ones({1, 3})));
  EXPECT_EQ(elements(y[1].tensor()), elements(shared(y[0].tensor())));
}

TEST(Functional, ModelsAreLayersOfOthers) {
  const SymbolicTensor x = Input({3});
  const Functional inner(x, layers::Dense(2)(x), {.name = "inner"});
  const SymbolicTensor y = Input({3});
  const Functional outer(y, layers::Dense(1)(inner(y)));
  EXPECT_THAT(outer.layer_names()[0], "inner");
  EXPECT_THAT(outer.variables(), SizeIs(4));
}

TEST(Functional, AnIntermediateTensorMayBeAnInput) {
  const SymbolicTensor x = Input({3});
  const SymbolicTensor hidden = layers::Dense(2)(x);
  const Functional head(hidden, layers::Dense(1)(hidden));
  EXPECT_THAT(head.variables(), SizeIs(2));
  EXPECT_THAT(head(at::ones({4, 2})).sizes(), ElementsAre(4, 1));
}

TEST(Functional, DisconnectedInputsAreNamed) {
  const SymbolicTensor a = Input({2}, {.name = "a"});
  const SymbolicTensor b = Input({2}, {.name = "b"});
  const auto sum = layers::Add({.name = "sum"})({a, b});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Functional(a, sum); }),
              AllOf(HasSubstr("disconnected"), HasSubstr("'b'"), HasSubstr("'sum'")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Functional({a, a}, sum); }), HasSubstr("twice"));
}

TEST(Functional, ChecksItsInputs) {
  const SymbolicTensor a = Input({2}, {.name = "a"});
  const SymbolicTensor b = Input({2}, {.name = "b"});
  const Functional model({a, b}, layers::Add()({a, b}), {.name = "net"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(Structure(at::ones({1, 2})));
              }),
              AllOf(HasSubstr("'net'"), HasSubstr("2 inputs")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(tuple(at::ones({1, 2}), at::ones({1, 3})));
              }),
              AllOf(HasSubstr("'b'"), HasSubstr("[1,3]")));
}

// As Keras: what the shape lacks, or has too much of, is a last dimension of size 1.
TEST(Functional, ALastDimensionOfOneComesAndGoes) {
  const SymbolicTensor pair = Input({2});
  const SymbolicTensor one = Input({1});
  const Functional model({pair, one}, {pair, one});
  const Structure y = model(tuple(at::ones({3, 2, 1}), at::ones({3})));
  EXPECT_THAT(y[0].tensor().sizes(), ElementsAre(3, 2));
  EXPECT_THAT(y[1].tensor().sizes(), ElementsAre(3, 1));
}

TEST(Functional, LayersNeedNamesOfTheirOwn) {
  const SymbolicTensor x = Input({3});
  const auto hidden = layers::Dense(3, {.name = "d"})(x);
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { Functional(x, layers::Dense(3, {.name = "d"})(hidden)); }),
      HasSubstr("'d'"));
}

struct CountsItsCalls : layers::Layer {
  void build(const std::vector<Shape>&) override {
    calls = add_weight("calls", {2},
                       {.initializer = "zeros",
                        .trainable = false,
                        .synchronization = distribute::VariableSynchronization::ON_READ,
                        .aggregation = distribute::VariableAggregation::SUM});
    rows = Variable(at::zeros({2}), {.name = "rows"});
    rows.assign(at::full({2}, 5.0));  // lasts, as what building makes does
  }
  Tensor call(const Tensor& x, const CallOptions&) override {
    calls.assign_add(1.0);
    calls.assign_add(at::ones({2}));
    rows.scatter_add({.values = at::ones({1}), .indices = at::zeros({1}, at::kLong)});
    rows.assign_sub(at::ones({2}));
    return x;
  }

  Variable calls, rows;
};

TEST(Functional, BuildingItChangesNoVariable) {
  const SymbolicTensor x = Input({4});
  const auto counting = std::make_shared<CountsItsCalls>();
  const layers::BatchNormalization normalization;
  const Functional model(x, normalization(layers::LayerHandle(counting)(x), {.training = true}));
  EXPECT_TRUE(at::equal(normalization.variables()[2].value(), at::zeros({4})));
  EXPECT_TRUE(at::equal(normalization.variables()[3].value(), at::ones({4})));
  EXPECT_TRUE(at::equal(counting->calls.value(), at::zeros({2})));
  EXPECT_TRUE(at::equal(counting->rows.value(), at::full({2}, 5.0)));
  model(at::ones({1, 4}));
  EXPECT_TRUE(at::equal(counting->calls.value(), at::full({2}, 2.0)));
  EXPECT_FALSE(at::equal(normalization.variables()[3].value(), at::ones({4})));
}

TEST(Functional, BuildingItLeavesGeneratorsWhereTheyAre) {
  const Tensor ones = at::ones({4, 8});
  const auto dropped = [&](bool in_model) {
    const layers::Dropout dropout(0.5, {.seed = 3});
    const SymbolicTensor x = Input({8});
    if (in_model) Functional(x, dropout(x, {.training = true}));
    return dropout(ones, {.training = true});
  };
  EXPECT_TRUE(at::equal(dropped(true), dropped(false)));
}

TEST(Functional, ALayerWithoutAnOutputIsNamed) {
  const SymbolicTensor x = Input({3});
  const layers::LayerHandle nothing =
      layers::Lambda([](const Tensor&) { return Tensor(); }, {.name = "nothing"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { nothing(x); }),
              AllOf(HasSubstr("'nothing'"), HasSubstr("undefined tensor")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                nothing(at::ones({1, 3}));
              }),
              HasSubstr("'nothing'"));
}

// As Keras 2.15 prints it.
TEST(Functional, SummarySaysWhatLayersAreConnectedTo) {
  const SymbolicTensor image = Input({4}, {.name = "image"});
  const SymbolicTensor size = Input({4}, {.name = "size"});
  const layers::Dense shared(3, {.name = "shared"});
  const auto joined = layers::Concatenate({.name = "joined"})({shared(image), shared(size)});
  const Functional model({image, size}, layers::Dense(2, {.name = "out"})(joined), {.name = "two"});
  EXPECT_EQ(model.summary_text(),
            "Model: \"two\"\n"
            "______________________________________________________________________________________"
            "____________\n"
            " Layer (type)                Output Shape                 Param #   Connected to      "
            "            \n"
            "======================================================================================"
            "============\n"
            " image (InputLayer)          [(None, 4)]                  0         []                "
            "            \n"
            "                                                                                      "
            "            \n"
            " size (InputLayer)           [(None, 4)]                  0         []                "
            "            \n"
            "                                                                                      "
            "            \n"
            " shared (Dense)              (None, 3)                    15        ['image[0][0]',   "
            "            \n"
            "                                                                     'size[0][0]']    "
            "            \n"
            "                                                                                      "
            "            \n"
            " joined (Concatenate)        (None, 6)                    0         ['shared[0][0]',  "
            "            \n"
            "                                                                     'shared[1][0]']  "
            "            \n"
            "                                                                                      "
            "            \n"
            " out (Dense)                 (None, 2)                    14        ['joined[0][0]']  "
            "            \n"
            "                                                                                      "
            "            \n"
            "======================================================================================"
            "============\n"
            "Total params: 29 (116.00 Byte)\n"
            "Trainable params: 29 (116.00 Byte)\n"
            "Non-trainable params: 0 (0.00 Byte)\n"
            "______________________________________________________________________________________"
            "____________\n");
}

// Nor has Keras the column for a chain; several outputs of a layer stand below each other.
TEST(Functional, SummaryOfAChainHasNoConnections) {
  const SymbolicTensor input = Input({7, 4}, {.name = "in"});
  const auto states =
      layers::LSTM(3, {.return_state = true, .name = "x"})(SymbolicStructure(input));
  const Functional model(input, states, {.name = "chain"});
  EXPECT_THAT(
      model.summary_text(),
      ::testing::StartsWith("Model: \"chain\"\n"
                            "_________________________________________________________________\n"
                            " Layer (type)                Output Shape              Param #   \n"
                            "=================================================================\n"
                            " in (InputLayer)             [(None, 7, 4)]            0         \n"
                            "                                                                 \n"
                            " x (LSTM)                    [(None, 3),               96        \n"
                            "                              (None, 3),                         \n"
                            "                              (None, 3)]                         \n"
                            "                                                                 \n"
                            "=================================================================\n"));
}

}  // namespace
}  // namespace cohort::keras
