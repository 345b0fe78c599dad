// Checkpoints for the tests of the commands.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/bundle/bundle_writer.h"
#include "cohort/train/objects/object_graph.h"

namespace cohort::tools {

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string value_key(std::string_view path) {
  return internal::attribute_key(path, "VARIABLE_VALUE");
}

// model/kernel: float32 [2, 3] of 0 to 5; model/table: float32 [3, 2] of 10 to 15 in two parts;
// step: int64; words: two strings; and their graph, in which the optimizer refers to the kernel.
struct CheckpointContent {
  std::vector<float> kernel = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> step = {7};
};

inline std::string graph_bytes() {
  internal::ObjectGraph graph;
  graph.nodes.resize(6);
  graph.nodes[0].children = {{"model", 1}, {"optimizer", 4}, {"step", 3}};
  graph.nodes[1].children = {{"kernel", 2}, {"table", 5}};
  graph.nodes[4].children = {{"0", 2}, {"owner", 0}};
  graph.nodes[2].attributes = {{"VARIABLE_VALUE", "kernel", value_key("model/kernel")}};
  graph.nodes[5].attributes = {{"VARIABLE_VALUE", "table", value_key("model/table")}};
  graph.nodes[3].attributes = {{"VARIABLE_VALUE", "step", value_key("step")}};
  return internal::format_object_graph(graph);
}

inline void write_checkpoint(internal::FileSystem& files, const std::string& prefix,
                             const CheckpointContent& content = {}) {
  using internal::BundleTensor;
  using internal::BundleType;
  internal::BundleWriter bundle(files, prefix);
  bundle.add(value_key("model/kernel"), {BundleType::kFloat32, {2, 3}}, bytes_of(content.kernel));
  const std::vector<float> table = {10, 11, 12, 13, 14, 15};
  const BundleTensor whole = {BundleType::kFloat32, {3, 2}};
  bundle.add_slice(value_key("model/table"), whole, {{0, 0}, {2, 2}},
                   bytes_of(table).substr(0, 16));
  bundle.add_slice(value_key("model/table"), whole, {{2, 0}, {1, 2}}, bytes_of(table).substr(16));
  bundle.add(value_key("step"), {BundleType::kInt64, {}}, bytes_of(content.step));
  const std::vector<std::string_view> words = {"one", "t\x1bo"};
  bundle.add_strings("words", {2}, words);
  const std::string graph = graph_bytes();
  const std::vector<std::string_view> graphs = {graph};
  bundle.add_strings(internal::kObjectGraphKey, {}, graphs);
  bundle.finish();
}

// Of "dir", in which checkpoints lie.
struct CheckpointCommandTest : testing::Test {
  CheckpointCommandTest() { files.make_directories("dir"); }

  // Flips a bit of a file.
  void damage(const std::string& path, size_t byte) {
    std::string bytes = files.content(path);
    bytes.at(byte) ^= 1;
    files.set_content(path, bytes);
  }

  internal::SimulatedFileSystem files;
  std::ostringstream out;
};

}  // namespace cohort::tools
