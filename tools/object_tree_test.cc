#include "tools/object_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace cohort::tools {
namespace {

using internal::ObjectGraph;
using testing::HasSubstr;

std::string tree(const ObjectGraph& graph) {
  std::ostringstream out;
  print_object_tree(
      graph, [](const std::string& key) { return "value of " + key; }, out);
  return out.str();
}

TEST(ObjectTree, PrintsEachObjectOnce) {
  ObjectGraph graph;
  graph.nodes.resize(4);
  graph.nodes[0].children = {{"optimizer", 3}, {"model", 1}};
  graph.nodes[1].children = {{"w", 2}, {"self", 1}, {"parent", 0}};
  graph.nodes[2].attributes = {{"VARIABLE_VALUE", "", "kw"}};
  graph.nodes[3].children = {{"vars/0", 2}};
  graph.nodes[3].attributes = {{"CONFIG", "", "kc"}};
  EXPECT_EQ(tree(graph),
            "optimizer\n"
            "  CONFIG: value of kc\n"
            "  vars/0: value of kw\n"
            "model\n"
            "  w -> optimizer/vars/0\n"
            "  self -> model\n"
            "  parent -> the root\n");
}

TEST(ObjectTree, AnObjectStandsWhereTheWayIsShortest) {
  ObjectGraph graph;
  graph.nodes.resize(3);
  graph.nodes[0].children = {{"a", 1}, {"w", 2}};
  graph.nodes[1].children = {{"w", 2}};
  EXPECT_EQ(tree(graph), "a\n  w -> w\nw\n");
}

TEST(ObjectTree, SlotsAndWhatNothingLeadsTo) {
  ObjectGraph graph;
  graph.nodes.resize(5);
  graph.nodes[0].children = {{"opt", 1}, {"w", 2}};
  graph.nodes[1].slot_variables = {
      {.original_variable = 2, .slot_variable = 3, .slot_name = "momentum"}};
  graph.nodes[3].attributes = {{"VARIABLE_VALUE", "", "km"}};
  EXPECT_EQ(tree(graph),
            "opt\n"
            "  slot momentum of w: value of km\n"
            "w\n"
            "1 object that nothing leads to\n");
}

TEST(ObjectTree, AHostileGraphCostsLittle) {
  ObjectGraph chain;
  chain.nodes.resize(100'000);
  for (uint32_t i = 0; i + 1 < chain.nodes.size(); ++i) {
    chain.nodes[i].children = {{"child", i + 1}, {"\x1b[31m", i}};
  }
  const std::string text = tree(chain);
  EXPECT_LT(text.size(), 100'000u);
  EXPECT_THAT(text, HasSubstr("99899 objects more than 100 levels down not shown"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace cohort::tools
