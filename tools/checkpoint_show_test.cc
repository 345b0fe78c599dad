#include "cohort/core/error.h"
#include "tools/checkpoint_commands.h"
#include "tools/testing_checkpoints.h"

namespace cohort::tools {
namespace {

using testing::HasSubstr;

struct CheckpointShow : CheckpointCommandTest {
  CheckpointShow() { write_checkpoint(files, "dir/ckpt-1"); }

  std::string show(const ShowOptions& options) {
    EXPECT_EQ(show_checkpoint(files, options, out), kExitOk);
    return out.str();
  }
};

TEST_F(CheckpointShow, TheGraphOfObjects) {
  EXPECT_EQ(show({.path = "dir/ckpt-1"}),
            "model\n"
            "  kernel: float32 [2, 3]\n"
            "  table: float32 [3, 2] in 2 parts\n"
            "optimizer\n"
            "  0 -> model/kernel\n"
            "  owner -> the root\n"
            "step: int64 []\n"
            "tensors of no object:\n"
            "  words: string [2]\n");
}

TEST_F(CheckpointShow, ACheckpointWithoutAGraph) {
  {
    internal::BundleWriter bundle(files, "dir/plain");
    bundle.add("w", {internal::BundleType::kInt8, {1}}, "1");
    bundle.finish();
  }
  EXPECT_EQ(show({.path = "dir/plain"}), "no graph of objects; the tensors are:\nw: int8 [1]\n");
}

TEST_F(CheckpointShow, AValueThatIsMissing) {
  {
    internal::BundleWriter bundle(files, "dir/part");
    const std::string graph = graph_bytes();
    const std::vector<std::string_view> graphs = {graph};
    bundle.add_strings(internal::kObjectGraphKey, {}, graphs);
    bundle.finish();
  }
  EXPECT_THAT(show({.path = "dir/part"}), HasSubstr("step: missing from the checkpoint\n"));
}

TEST_F(CheckpointShow, AValueOfSeveralTensors) {
  {
    internal::ObjectGraph graph;
    graph.nodes.resize(2);
    graph.nodes[0].children = {{"table", 1}};
    graph.nodes[1].attributes = {{"TABLE", "", "table/.ATTRIBUTES/TABLE"}};
    const std::string bytes = internal::format_object_graph(graph);
    const std::vector<std::string_view> graphs = {bytes};
    internal::BundleWriter bundle(files, "dir/table");
    bundle.add("table/.ATTRIBUTES/TABLE-keys", {internal::BundleType::kInt8, {1}}, "1");
    bundle.add("table/.ATTRIBUTES/TABLE-values", {internal::BundleType::kUint8, {1}}, "2");
    bundle.add_strings(internal::kObjectGraphKey, {}, graphs);
    bundle.finish();
  }
  EXPECT_EQ(show({.path = "dir/table"}), "table\n  TABLE: -keys int8 [1], -values uint8 [1]\n");
  EXPECT_EQ(verify_checkpoints(files, {.path = "dir/table"}, out), kExitOk);
}

TEST_F(CheckpointShow, ValuesByReadableAndRawKey) {
  const std::string values = "model/kernel: float32 [2, 3]\n[[0., 1., 2.],\n [3., 4., 5.]]\n";
  EXPECT_EQ(show({.path = "dir/ckpt-1", .key = "model/kernel"}), values);
  out.str("");
  EXPECT_EQ(show({.path = "dir/ckpt-1", .key = value_key("model/kernel")}), values);
}

TEST_F(CheckpointShow, ValuesOfAPartitionedTensor) {
  EXPECT_EQ(show({.path = "dir/ckpt-1", .key = "model/table"}),
            "model/table: float32 [3, 2] in 2 parts\n[[10., 11.],\n [12., 13.],\n [14., 15.]]\n");
}

TEST_F(CheckpointShow, FewerValuesIfToldSo) {
  EXPECT_EQ(show({.path = "dir/ckpt-1", .key = "model/kernel", .max_elements = 2}),
            "model/kernel: float32 [2, 3]\n[[0., 1., ...],\n ...]\n");
}

TEST_F(CheckpointShow, StringsAreQuotedAndEscaped) {
  EXPECT_EQ(show({.path = "dir/ckpt-1", .key = "words"}),
            "words: string [2]\n[\"one\", \"t\\x1bo\"]\n");
}

TEST_F(CheckpointShow, WhatIsNotThere) {
  EXPECT_THROW(show({.path = "dir/ckpt-1", .key = "kernel"}), NotFoundError);
  EXPECT_THROW(show({.path = "dir"}), NotFoundError) << "a directory is no checkpoint";
  EXPECT_THROW(show({.path = "dir/none"}), NotFoundError);
}

TEST_F(CheckpointShow, DamagedValuesAreNotShown) {
  damage("dir/ckpt-1.data-00000-of-00001", 0);
  EXPECT_THROW(show_checkpoint(files, {.path = "dir/ckpt-1", .key = "model/kernel"}, out),
               DataLossError);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace cohort::tools
