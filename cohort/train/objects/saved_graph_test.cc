#include "cohort/train/objects/saved_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/bundle/bundle_writer.h"

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;

// A checkpoint of an optimizer as Keras has it: a list of all of its variables, and one of each
// kind of slot.
class SavedGraphTest : public ::testing::Test {
 protected:
  SavedGraphTest() {
    files_.make_directories("dir");
    graph_.nodes.resize(5);  // the root, the optimizer, "_variables", "_iterations", "_momentums"
    graph_.nodes[0].children = {{"optimizer", 1}};
    graph_.nodes[1].children = {{"_variables", 2}, {"_iterations", 3}, {"_momentums", 4}};
    graph_.nodes[2].children = {{"0", 3}};
  }

  struct Value {
    std::string name;
    std::vector<float> values;
    int64_t columns = 2;
  };
  // Returns its node.
  uint32_t add(const Value& value) {
    const auto node = static_cast<uint32_t>(graph_.nodes.size());
    graph_.nodes.emplace_back().attributes = {{"VARIABLE_VALUE", value.name, key_of(node)}};
    values_.emplace_back(node, value);
    return node;
  }
  // To the list `list` of the optimizer.
  void list(uint32_t list, uint32_t node) {
    auto& children = graph_.nodes[list].children;
    children.push_back({std::to_string(children.size()), node});
  }
  uint32_t add_slot(uint32_t of_kind, const Value& value) {
    const uint32_t node = add(value);
    list(2, node);
    if (of_kind != 0) list(of_kind, node);
    return node;
  }
  static std::string key_of(uint32_t node) { return "value" + std::to_string(100 + node); }

  ObjectGraph read() {
    {
      BundleWriter bundle(files_, "dir/ckpt");
      for (const auto& [node, value] : values_) {
        const auto rows = static_cast<int64_t>(value.values.size()) / value.columns;
        bundle.add(key_of(node), {BundleType::kFloat32, {rows, value.columns}},
                   std::string_view(reinterpret_cast<const char*>(value.values.data()),
                                    value.values.size() * sizeof(float)));
      }
      const std::string bytes = format_object_graph(graph_);
      const std::vector<std::string_view> texts = {bytes};
      bundle.add_strings(kObjectGraphKey, {}, texts);
      bundle.finish();
    }
    bundle_.emplace(files_, "dir/ckpt");
    return read_saved_graph(*bundle_);
  }
  static std::vector<std::string> names(const ObjectGraph& graph, uint32_t list) {
    std::vector<std::string> found;
    for (const auto& child : graph.nodes[list].children) {
      const auto& attributes = graph.nodes[child.node].attributes;
      found.push_back(child.name + " " + (attributes.empty() ? "" : attributes[0].full_name));
    }
    return found;
  }
  std::vector<float> values(const std::string& key) const {
    int64_t count = 1;
    for (const int64_t size : bundle_->entry(key).shape) count *= size;
    std::vector<float> read(static_cast<size_t>(count));
    bundle_->read(key, read.data());
    return read;
  }

  SimulatedFileSystem files_;
  ObjectGraph graph_;
  std::vector<std::pair<uint32_t, Value>> values_;
  std::optional<BundleReader> bundle_;
};

TEST_F(SavedGraphTest, SlotsOfThePartsOfAVariableAreOne) {
  const uint32_t m = add_slot(4, {"Adam/m/table/part_0", {1, 2, 3, 4}});
  const uint32_t v = add_slot(0, {"Adam/v/table/part_0", {11, 12, 13, 14}});
  add_slot(4, {"Adam/m/table/part_1", {5, 6}});
  add_slot(0, {"Adam/v/table/part_1", {15, 16}});
  add_slot(4, {"Adam/m/bias", {7, 8}});
  const ObjectGraph graph = read();
  EXPECT_THAT(names(graph, 2),
              ElementsAre("0 ", "1 Adam/m/table", "2 Adam/v/table", "3 Adam/m/bias"));
  EXPECT_THAT(names(graph, 4), ElementsAre("0 Adam/m/table", "1 Adam/m/bias"));
  EXPECT_THAT(bundle_->entry(key_of(m)).shape, ElementsAre(3, 2));
  EXPECT_THAT(values(key_of(m)), ElementsAre(1, 2, 3, 4, 5, 6));
  std::vector<float> rows(4);
  bundle_->read_slice(key_of(v), {{1, 0}, {2, 2}}, rows.data());
  EXPECT_THAT(rows, ElementsAre(13, 14, 15, 16));
  EXPECT_EQ(bundle_->entries().size(), 4u);  // with the graph
  for (const auto& [name, entry] : bundle_->entries()) bundle_->verify(name);
}

TEST_F(SavedGraphTest, TwoVariablesOfOneNameAreTwo) {
  for (int i = 0; i < 2; ++i) {
    add_slot(4, {"Adam/m/table/part_0", {1, 2}});
    add_slot(4, {"Adam/m/table/part_1", {3, 4}});
  }
  EXPECT_THAT(names(read(), 4), ElementsAre("0 Adam/m/table", "1 Adam/m/table"));
}

TEST_F(SavedGraphTest, SlotsOfVariablesThatAreCalledLikePartsStayAsTheyAre) {
  add({"table/part_0", {0, 0}});
  add({"table/part_1", {0, 0}});
  add_slot(4, {"Adam/m/table/part_0", {1, 2}});
  add_slot(4, {"Adam/m/table/part_1", {3, 4}});
  EXPECT_THAT(names(read(), 4), ElementsAre("0 Adam/m/table/part_0", "1 Adam/m/table/part_1"));
}

TEST_F(SavedGraphTest, WhatCannotBePartsOfOneStaysAsItIs) {
  const uint32_t first = add_slot(4, {"Adam/m/a/part_0", {1, 2}});
  add_slot(4, {"Adam/m/a/part_1", {3, 4, 5}, 3});
  add_slot(4, {"Adam/m/b/part_1", {3, 4}});
  add_slot(4, {"Adam/m/c/part_0", {3, 4}});
  add_slot(4, {"Adam/m/c/part_2", {3, 4}});
  EXPECT_EQ(names(read(), 4).size(), 5u);
  EXPECT_THAT(values(key_of(first)), ElementsAre(1, 2));
}

}  // namespace
}  // namespace cohort::internal
