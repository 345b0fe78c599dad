#include "cohort/keras/model/layer_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/functional.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;

// The names of model.layers, and of the layers in the order of model.trainable_variables, were
// taken from tf.keras 2.15 for these graphs.

layers::LayerHandle dense(const std::string& name, int64_t units = 4) {
  return layers::Dense(units, {.use_bias = false, .name = name});
}
layers::LayerHandle add(const std::string& name) { return layers::Add({.name = name}); }
SymbolicTensor input(const std::string& name) { return Input({4}, {.name = name}); }

std::vector<std::string> order(const SymbolicStructure& inputs, const SymbolicStructure& outputs) {
  std::vector<std::string> names;
  for (const auto& layer : internal::layers_by_depth(inputs, outputs)) {
    names.push_back(layer.name());
  }
  return names;
}

TEST(LayerOrder, BranchesOfDifferentDepth) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor b = dense("b")(dense("a")(i));
  const SymbolicTensor c = dense("c")(i);
  EXPECT_THAT(order(i, add("add")({c, b})), ElementsAre("i", "a", "c", "b", "add"));
  EXPECT_THAT(order(i, add("add")({b, c})), ElementsAre("i", "a", "b", "c", "add"));
}

TEST(LayerOrder, SeveralInputsStandWhereTheyAreUsed) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor j = input("j");
  const SymbolicTensor merged = layers::Concatenate({.name = "cat"})({dense("a")(i), j});
  const SymbolicTensor o = dense("o")(merged);
  EXPECT_THAT(order({i, j}, o), ElementsAre("i", "a", "j", "cat", "o"));
  EXPECT_THAT(order({j, i}, o), ElementsAre("i", "a", "j", "cat", "o"));
}

TEST(LayerOrder, ASharedLayerStandsAtItsDeepestCall) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor j = input("j");
  const layers::LayerHandle s = dense("s");
  EXPECT_THAT(order({i, j}, add("add")({s(i), s(dense("t")(j))})),
              ElementsAre("j", "i", "t", "s", "add"));
  EXPECT_THAT(order(i, dense("m")(s(s(i)))), ElementsAre("i", "s", "m"));
  const SymbolicTensor z = s(dense("y")(s(i)));
  EXPECT_THAT(order(i, layers::Concatenate({.name = "cat"})({dense("w")(i), z})),
              ElementsAre("i", "s", "y", "w", "cat"));
}

TEST(LayerOrder, SeveralOutputs) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor p = dense("p")(dense("h")(i));
  const SymbolicTensor q = dense("q")(p);
  EXPECT_THAT(order(i, {p, q}), ElementsAre("i", "h", "p", "q"));
  EXPECT_THAT(order(i, {q, p}), ElementsAre("i", "h", "p", "q"));
}

TEST(LayerOrder, DictsGoByTheirKeys) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor p = dense("p")(i);
  const SymbolicTensor q = dense("q")(i);
  EXPECT_THAT(order(i, SymbolicStructure::make_dict({{"z", p}, {"a", q}})),
              ElementsAre("i", "q", "p"));
}

TEST(LayerOrder, AnInputThatNothingNeedsIsFirstAtTheEnd) {
  const SymbolicTensor i = input("i");
  EXPECT_THAT(order({input("u"), i}, dense("o")(i)), ElementsAre("i", "u", "o"));
}

TEST(LayerOrder, AnIntermediateTensorBecomesAnInput) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor h = dense("h")(i);
  const SymbolicTensor g = dense("g")(h);
  EXPECT_THAT(order(h, dense("o")(g)), ElementsAre("h", "g", "o"));
  EXPECT_THAT(order({h, i}, add("add")({g, dense("k")(i)})),
              ElementsAre("h", "i", "g", "k", "add"));
}

TEST(LayerOrder, Diamonds) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor f = layers::Flatten({.name = "f"})(i);
  const SymbolicTensor c = dense("c")(layers::Activation("relu", {.name = "b"})(f));
  EXPECT_THAT(order(i, add("add")({dense("a")(f), c})),
              ElementsAre("i", "f", "b", "a", "c", "add"));
}

TEST(LayerOrder, SkipConnections) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor x1 = dense("x1")(i);
  const SymbolicTensor s1 = add("s1")({x1, dense("x2")(x1)});
  EXPECT_THAT(order(i, add("s2")({i, dense("x3")(s1)})),
              ElementsAre("i", "x1", "x2", "s1", "x3", "s2"));
}

TEST(LayerOrder, DecidesThatOfAModelsVariables) {
  const SymbolicTensor i = input("i");
  const SymbolicTensor b = dense("b")(dense("a")(i));
  const Functional model(i, add("add")({dense("c")(i), b}));
  EXPECT_THAT(model.layer_names(), ElementsAre("a", "c", "b", "add"));
  std::vector<std::string> names;
  for (const Variable& variable : model.trainable_variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("a/kernel", "c/kernel", "b/kernel"));
}

}  // namespace
}  // namespace cohort::keras
