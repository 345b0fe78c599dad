#include "cohort/data/graph/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/graph/graph.h"
#include "cohort/data/test_util.h"

namespace cohort::internal {
namespace {

using data::Dataset;
using data::ints;
using testing::ElementsAre;

DataNodePtr shard(const DataNodePtr& node) { return Dataset(node).shard(2, 1).node(); }

TEST(Rewrite, PutsAShardBeforeATerminalPrefetch) {
  const DataNodePtr root = Dataset::range(6).batch(2).prefetch(1).node();
  DataNodePtr target = root;
  while (target->passes_element_sharding()) target = target->inputs()[0];
  const DataNodePtr sharded = insert_above(root, target, shard);
  EXPECT_EQ(describe_graph(*sharded),
            "prefetch(buffer_size=1)\n"
            "  shard(num_shards=2, index=1)\n"
            "    batch(batch_size=2)\n"
            "      range(start=0, stop=6, step=1)\n");
  EXPECT_THAT(ints(Dataset(sharded)), ElementsAre(2, 3));
  EXPECT_THAT(ints(Dataset(root)), ElementsAre(0, 1, 2, 3, 4, 5));  // as it was
}

TEST(Rewrite, PutsAShardBelowANode) {
  const DataNodePtr root = Dataset::range(6).map([](int64_t x) { return 10 * x; }).batch(2).node();
  const DataNodePtr map = root->inputs()[0];
  EXPECT_THAT(ints(Dataset(insert_below(root, map, shard))), ElementsAre(10, 30, 50));
}

TEST(Rewrite, KeepsSharedNodesSharedAndUntouchedOnesIdentical) {
  const Dataset source = Dataset::range(4), other = Dataset::range(3);
  const DataNodePtr root = Dataset::zip({source.batch(2), source.repeat(2), other.batch(1)}).node();
  const DataNodePtr sharded = insert_above(root, source.node(), shard);
  EXPECT_EQ(sharded->inputs()[0]->inputs()[0], sharded->inputs()[1]->inputs()[0]);
  EXPECT_EQ(sharded->inputs()[2], root->inputs()[2]);
  EXPECT_EQ(rewrite(root, [](const DataNodePtr& node) { return node; }), root);
}

TEST(Rewrite, EveryKindOfNodeCanBeRebuilt) {
  const Dataset source = Dataset::range(12);
  const Dataset dataset =
      Dataset::zip({{"a", source.shuffle(4, {.seed = 1}).map([](int64_t x) { return -x; })},
                    {"b", source.concatenate(source).skip(1).take(9).shard(1, 0)}})
          .batch(3)
          .unbatch()
          .filter([](const Structure&) { return true; })
          .repeat(2)
          .enumerate()
          .prefetch(2);
  // The source is replaced by an equal one, so that everything above it is made anew.
  const DataNodePtr rebuilt = rewrite(dataset.node(), [](const DataNodePtr& node) {
    return node->inputs().empty() ? Dataset::range(12).node() : node;
  });
  EXPECT_NE(rebuilt, dataset.node());
  EXPECT_EQ(describe_graph(*rebuilt), describe_graph(*dataset.node()));
  EXPECT_EQ(texts(Dataset(rebuilt)), texts(dataset));
  int sources = 0, visited = 0;
  for_each_node(rebuilt, [&](const DataNodePtr& node) {
    ++visited;
    if (node->source() == SourceKind::kUnshardable) ++sources;
  });
  EXPECT_EQ(visited, 14);
  EXPECT_EQ(sources, 1);
}

TEST(Rewrite, NodesSayWhatBatchesTheyGive) {
  const Dataset batches = Dataset::range(12).batch(4);
  EXPECT_EQ(
      batches.prefetch(1).repeat().take(3).skip(1).shuffle(2).shard(2, 0).node()->batch_size(), 4);
  EXPECT_EQ(Dataset::zip({batches, batches})
                .concatenate(Dataset::zip({batches, batches}))
                .node()
                ->batch_size(),
            4);
  EXPECT_EQ(batches.unbatch().node()->batch_size(), kUnknownBatchSize);
  EXPECT_EQ(batches.map([](const Tensor& x) { return x; }).node()->batch_size(), kUnknownBatchSize);
}

}  // namespace
}  // namespace cohort::internal
