#include "cohort/keras/callbacks/layer_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/testing_errors.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/model/sequential.h"

namespace cohort::keras {
namespace {

using internal::layer_graph;
using internal::WireReader;
using ::testing::ElementsAre;
using ::testing::Pair;

// {node: "Operation < input < input"}.
std::map<std::string, std::string> nodes_of(const ModelHandle& model) {
  const std::string bytes = layer_graph(model.to_json());
  std::map<std::string, std::string> nodes;
  WireReader graph(bytes, "graph");
  while (graph.next()) {
    if (graph.field() != 1) continue;
    WireReader node(graph.bytes(), "node");
    std::string name, rest;
    while (node.next()) {
      const std::string value(node.bytes());
      if (node.field() == 1) name = value;
      if (node.field() == 2) rest = value;
      if (node.field() == 3) rest += " < " + value;
    }
    nodes[name] = rest;
  }
  return nodes;
}

TEST(LayerGraph, OfASequentialModelIsAChain) {
  const Sequential model(
      {Input({4}, {.name = "x"}), layers::Dense(3, {.name = "a"}), layers::Flatten({.name = "b"})},
      {.name = "m"});
  EXPECT_THAT(nodes_of(model), ElementsAre(Pair("m/a", "Dense < m/x"), Pair("m/b", "Flatten < m/a"),
                                           Pair("m/x", "InputLayer")));
}

TEST(LayerGraph, OfAFunctionalModelHasItsBranches) {
  const SymbolicTensor x = Input({4}, {.name = "x"});
  const SymbolicTensor a = layers::Dense(3, {.name = "a"})(x);
  const SymbolicTensor b = layers::Dense(3, {.name = "b"})(x);
  const Functional model(x, layers::Add({.name = "sum"})({a, b}), {.name = "m"});
  EXPECT_THAT(nodes_of(model),
              ElementsAre(Pair("m/a", "Dense < m/x"), Pair("m/b", "Dense < m/x"),
                          Pair("m/sum", "Add < m/a < m/b"), Pair("m/x", "InputLayer")));
}

TEST(LayerGraph, NestedModelsAreScopes) {
  const Sequential inner({layers::Dense(3, {.name = "a"}), layers::Dense(2, {.name = "b"})},
                         {.name = "inner"});
  const SymbolicTensor x = Input({4}, {.name = "x"});
  const Functional model(x, layers::Dense(1, {.name = "end"})(inner(x)), {.name = "m"});
  const auto nodes = nodes_of(model);
  EXPECT_EQ(nodes.at("m/inner/b"), "Dense < m/inner/a");
  EXPECT_EQ(nodes.at("m/end"), "Dense < m/inner/b");
  EXPECT_THAT(nodes.at("m/inner/a"), ::testing::HasSubstr("Dense < m/"));
}

TEST(LayerGraph, ALayerOfTheProgramIsANodeWhateverItsConfigurationHolds) {
  const std::string graph =
      layer_graph(R"({"class_name": "Own", "config": {"name": "m", "layers": [3]}})");
  EXPECT_THAT(graph, ::testing::HasSubstr("Own"));
}

TEST(LayerGraph, NamesTheClassOfALayerWithoutAName) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                layer_graph(R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
                                {"class_name": "Scale", "config": {}}]}})");
              }),
              ::testing::AllOf(::testing::HasSubstr("Scale"), ::testing::HasSubstr("'name'")));
}

TEST(LayerGraph, WhatIsNoModelIsRefused) {
  EXPECT_THROW(layer_graph("{}"), InvalidArgumentError);
  EXPECT_THROW(layer_graph("[1"), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras
