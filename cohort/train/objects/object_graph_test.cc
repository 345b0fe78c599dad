#include "cohort/train/objects/object_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/train/objects/object_graph_merge.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;

ObjectGraph sample() {
  ObjectGraph graph;
  graph.nodes.resize(4);
  graph.nodes[0].children = {{"model", 1}, {"again", 2}};
  graph.nodes[1].children = {{"a.b/c", 2}, {"self", 0}};
  graph.nodes[2].attributes = {{"VARIABLE_VALUE", "w", "again/.ATTRIBUTES/VARIABLE_VALUE"}};
  return graph;
}

std::string graph_error(std::string_view bytes) {
  try {
    parse_object_graph(bytes, "ckpt.index");
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ObjectGraph, ReadsWhatWasWritten) {
  const ObjectGraph graph = parse_object_graph(format_object_graph(sample()), "ckpt.index");
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[0].children[1].name, "again");
  EXPECT_EQ(graph.nodes[1].children[0].node, 2u);
  EXPECT_EQ(graph.nodes[1].children[1].node, 0u) << "cycles are allowed";
  EXPECT_EQ(graph.nodes[2].attributes[0].full_name, "w");
  EXPECT_EQ(graph.nodes[2].attributes[0].checkpoint_key, "again/.ATTRIBUTES/VARIABLE_VALUE");
}

TEST(ObjectGraph, NamesAreEscapedInKeysAndReadableOutside) {
  EXPECT_EQ(escape_name("a.b/c"), "a..b.Sc");
  EXPECT_EQ(attribute_key("model/a..b", "VARIABLE_VALUE"), "model/a..b/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(readable_key("model/linear..weight/.ATTRIBUTES/VARIABLE_VALUE"), "model/linear.weight");
  EXPECT_EQ(readable_key("it/.ATTRIBUTES/COHORT_ITERATOR_STATE"),
            "it/.ATTRIBUTES/COHORT_ITERATOR_STATE");
  EXPECT_EQ(readable_key("a.Sb/.ATTRIBUTES/VARIABLE_VALUE"), "a/b");
}

TEST(ObjectGraph, ReferencesThatLeadNowhereAreRefused) {
  ObjectGraph graph = sample();
  graph.nodes[3].children = {{"x", 4}};
  graph.nodes.resize(5);
  std::string bytes = format_object_graph(graph);
  graph.nodes.resize(4);
  graph.nodes[3].children.clear();
  // The last node's message is removed: it is empty but for its flag.
  const std::string last = WireWriter().bytes(1, WireWriter().bytes(5, "").str()).str();
  bytes.resize(bytes.size() - last.size());
  EXPECT_THAT(graph_error(bytes), HasSubstr("refers to object 4 of 4"));
}

TEST(ObjectGraph, MorePartsThanTheBytesCanMeanAreRefused) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += std::string_view("\x0a\0", 2);
  EXPECT_THAT(graph_error(bytes), HasSubstr("more parts"));
}

TEST(ObjectGraph, EveryTruncationIsAnErrorOrAGraph) {
  const std::string bytes = format_object_graph(sample());
  for (size_t size = 0; size < bytes.size(); ++size) graph_error(bytes.substr(0, size));
  EXPECT_THAT(graph_error(""), HasSubstr("no objects"));
}

TEST(ObjectGraph, GraphsOfTwoProcessesAreOne) {
  ObjectGraph graph = sample();
  // Its object 1 is new and comes first; 3 is the writer's `again`, by a longer way alone; 2 is the
  // writer's `model`, which has a child more here.
  ObjectGraph other;
  other.nodes.resize(4);
  other.nodes[0].children = {{"own", 1}, {"model", 2}};
  other.nodes[1].children = {{"uses", 3}};
  other.nodes[1].attributes = {{"VARIABLE_VALUE", "", "own/.ATTRIBUTES/VARIABLE_VALUE"}};
  other.nodes[2].children = {{"a.b/c", 3}, {"more", 1}, {"self", 0}};
  other.nodes[3].attributes = {{"VARIABLE_VALUE", "w", "own/uses/.ATTRIBUTES/VARIABLE_VALUE"},
                               {"PARTS", "w", "own/uses/.ATTRIBUTES/PARTS"}};

  const auto keys = merge_object_graph(graph, other);
  EXPECT_THAT(
      keys,
      testing::UnorderedElementsAre(
          testing::Pair("own/.ATTRIBUTES/VARIABLE_VALUE", "own/.ATTRIBUTES/VARIABLE_VALUE"),
          testing::Pair("own/uses/.ATTRIBUTES/VARIABLE_VALUE", "again/.ATTRIBUTES/VARIABLE_VALUE"),
          testing::Pair("own/uses/.ATTRIBUTES/PARTS", "own/uses/.ATTRIBUTES/PARTS")));
  const auto children = [&](size_t node) {
    std::string text;
    for (const auto& child : graph.nodes[node].children) {
      text += child.name + ":" + std::to_string(child.node) + " ";
    }
    return text;
  };
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(children(0), "model:1 again:2 own:4 ");
  EXPECT_EQ(children(1), "a.b/c:2 self:0 more:4 ");
  EXPECT_EQ(children(4), "uses:2 ");
  EXPECT_EQ(graph.nodes[2].attributes.size(), 2u);
  EXPECT_EQ(graph.nodes[4].attributes[0].checkpoint_key, "own/.ATTRIBUTES/VARIABLE_VALUE");
}

}  // namespace
}  // namespace cohort::internal
