#include "cohort/data/sharding/auto_shard.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::DataNode;
using internal::DataNodePtr;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a reader of files looks like to the rewrite: file f holds the records 10 f, ..., 10 f + 9.
class ReaderNode final : public internal::UnaryNode {
 public:
  explicit ReaderNode(DataNodePtr names)
      : UnaryNode("reader", names),
        records_(Dataset(std::move(names))
                     .map([](int64_t file) { return at::arange(10 * file, 10 * file + 10); })
                     .unbatch()
                     .node()) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ReaderNode>(std::move(inputs[0]));
  }
  StructureSpec element_spec() const override { return TensorSpec({{}}, int64); }
  int64_t cardinality() const override { return kUnknownCardinality; }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext& context) const override {
    return records_->make_iterator(context);
  }
  internal::SourceKind source() const override { return internal::SourceKind::kFiles; }

 private:
  DataNodePtr records_;
};

// A transformation that the rewrite knows nothing of.
class OpaqueNode final : public internal::UnaryNode {
 public:
  explicit OpaqueNode(DataNodePtr input) : UnaryNode("opaque", std::move(input)) {}
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<OpaqueNode>(std::move(inputs[0]));
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext& context) const override {
    return input().make_iterator(context);
  }
};

Dataset reader(const Dataset& names) { return Dataset(std::make_shared<ReaderNode>(names.node())); }
Dataset files(int64_t count) { return reader(Dataset::range(count)); }

Dataset with_policy(const Dataset& dataset, AutoShardPolicy policy) {
  return dataset.with_options({.experimental_distribute = {.auto_shard_policy = policy}});
}
Dataset part(const Dataset& dataset, AutoShardPolicy policy, int64_t workers, int64_t index) {
  return auto_shard(with_policy(dataset, policy), {.num_workers = workers, .index = index});
}
std::vector<int64_t> records(std::initializer_list<int64_t> of_files) {
  std::vector<int64_t> all;
  for (const int64_t file : of_files) {
    for (int64_t i = 0; i < 10; ++i) all.push_back(10 * file + i);
  }
  return all;
}

TEST(AutoShard, ByFilesTakesEveryNthFile) {
  for (const auto policy : {AutoShardPolicy::FILE, AutoShardPolicy::AUTO}) {
    EXPECT_THAT(ints(part(files(10), policy, 5, 3)), ElementsAreArray(records({3, 8})));
  }
  EXPECT_THAT(ints(part(files(10), AutoShardPolicy::OFF, 5, 3)),
              ElementsAreArray(records({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})));
}

TEST(AutoShard, ByElementsTakesEveryNthRecord) {
  const auto mine = ints(part(files(10), AutoShardPolicy::DATA, 5, 0));
  EXPECT_EQ(mine.size(), 20U);
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i], static_cast<int64_t>(5 * i));
}

TEST(AutoShard, PartsMayBeEmptyWhereTheReaderSaysSo) {
  const auto parts = [](const Dataset& dataset, AutoShardPolicy policy, int64_t workers) {
    std::vector<std::vector<int64_t>> all;
    for (int64_t index = 0; index < workers; ++index) {
      all.push_back(
          ints(auto_shard(with_policy(dataset, policy),
                          {.num_workers = workers, .index = index, .parts_may_be_empty = true})));
    }
    return all;
  };
  EXPECT_THAT(parts(files(2), AutoShardPolicy::FILE, 3),
              ElementsAre(records({0}), records({1}), IsEmpty()));
  EXPECT_THAT(parts(Dataset::range(2), AutoShardPolicy::DATA, 3),
              ElementsAre(ElementsAre(0), ElementsAre(1), IsEmpty()));
  // The policy divides by elements where some part would have no file.
  EXPECT_THAT(parts(files(2), AutoShardPolicy::AUTO, 3)[2], ElementsAre(2, 5, 8, 11, 14, 17));
  EXPECT_THAT(parts(files(2), AutoShardPolicy::AUTO, 2)[1], ElementsAreArray(records({1})));
}

TEST(AutoShard, FilesAreFoundBelowWhatPassesThem) {
  const Dataset dataset = files(6)
                              .map([](int64_t x) { return x; })
                              .filter([](int64_t x) { return x % 10 < 2; })
                              .repeat(2)
                              .batch(2)
                              .rebatch(1)
                              .prefetch(2)
                              .unbatch();
  EXPECT_THAT(ints(part(dataset, AutoShardPolicy::FILE, 3, 1)),
              ElementsAre(10, 11, 40, 41, 10, 11, 40, 41));
}

TEST(AutoShard, EveryBranchIsDivided) {
  const auto first_two = [](const Dataset& dataset) {
    return dataset.filter([](int64_t x) { return x % 10 < 2; });
  };
  EXPECT_THAT(ints(part(first_two(files(2).concatenate(files(4))), AutoShardPolicy::FILE, 2, 1)),
              ElementsAre(10, 11, 10, 11, 30, 31));
  const Dataset zipped = Dataset::zip({files(2), files(4)});
  EXPECT_THAT(texts(part(zipped.take(2), AutoShardPolicy::FILE, 2, 1)),
              ElementsAre("(10, 10)", "(11, 11)"));
}

TEST(AutoShard, NamesAreShuffledAfterTheirDivision) {
  const Dataset names = Dataset::range(8).shuffle(8, {.seed = 5});
  std::vector<int64_t> together;
  for (int64_t worker = 0; worker < 2; ++worker) {
    const Dataset mine = part(reader(names), AutoShardPolicy::FILE, 2, worker);
    EXPECT_EQ(internal::describe_graph(*mine.node()),
              internal::str("reader()\n"
                            "  shuffle(buffer_size=8, seed=5)\n"
                            "    shard(num_shards=2, index=",
                            worker,
                            ", require_non_empty=true)\n"
                            "      range(start=0, stop=8, step=1)\n"));
    for (const int64_t record : ints(mine)) {
      EXPECT_EQ(record / 10 % 2, worker);
      together.push_back(record);
    }
  }
  EXPECT_EQ(together.size(), 80U);
}

TEST(AutoShard, WithoutFilesByFilesIsNotFound) {
  const auto refused = [](const Dataset& dataset) {
    return thrown<NotFoundError>([&] { part(dataset, AutoShardPolicy::FILE, 2, 0); });
  };
  EXPECT_THAT(refused(Dataset::range(4).batch(2)), HasSubstr("unshardable source dataset: range("));
  EXPECT_THAT(refused(Dataset::from_tensors(Structure(1))), HasSubstr("from_tensors"));
  EXPECT_THAT(refused(Dataset::from_tensor_slices(at::arange(4))), HasSubstr("DATA"));
  EXPECT_THAT(refused(files(4).concatenate(Dataset::range(4))), HasSubstr("range("));
  EXPECT_THAT(refused(Dataset(std::make_shared<OpaqueNode>(files(4).node()))),
              HasSubstr("opaque()"));
}

TEST(AutoShard, AutoFallsBackToElementsAndSaysWhyOnce) {
  for (const auto policy : {AutoShardPolicy::AUTO, AutoShardPolicy::DATA}) {
    EXPECT_THAT(ints(part(Dataset::range(4).prefetch(1), policy, 2, 0)), ElementsAre(0, 2));
  }
  const auto sharded = internal::auto_shard_graph(Dataset::range(4).node(), AutoShardPolicy::AUTO,
                                                  {.num_workers = 2, .index = 0});
  EXPECT_EQ(sharded.applied, AutoShardPolicy::DATA);
  ASSERT_EQ(sharded.notes.size(), 1U);
  EXPECT_THAT(sharded.notes[0], HasSubstr("range("));
}

TEST(AutoShard, ElementsAreDividedBeforeATerminalPrefetch) {
  const Dataset dataset = part(Dataset::range(4).prefetch(1), AutoShardPolicy::DATA, 2, 0);
  EXPECT_EQ(internal::describe_graph(*dataset.node()),
            "prefetch(buffer_size=1)\n"
            "  shard(num_shards=2, index=0, require_non_empty=true)\n"
            "    range(start=0, stop=4, step=1)\n");
}

TEST(AutoShard, ByElementsCutsRebatchedBatchesByTheSimpleRule) {
  const Dataset dataset =
      with_policy(Dataset::range(8).batch(4).rebatch({2, 1, 1}), AutoShardPolicy::DATA);
  const auto pieces = [&](int64_t worker) {
    return texts(auto_shard(dataset, {.num_workers = 3, .index = worker, .num_replicas = 3}));
  };
  EXPECT_THAT(pieces(0), ElementsAre("[0, 1]", "[4, 5]"));
  EXPECT_THAT(pieces(1), ElementsAre("[2, 3]", "[6, 7]"));
  EXPECT_THAT(pieces(2), ElementsAre("[]", "[]"));
}

TEST(AutoShard, HintsSayWhereToDivide) {
  const Dataset dataset =
      Dataset::range(8).shard(SHARD_HINT, SHARD_HINT).map([](int64_t x) { return 10 * x; });
  EXPECT_THAT(ints(part(dataset, AutoShardPolicy::HINT, 2, 1)), ElementsAre(10, 30, 50, 70));
  EXPECT_THAT(ints(dataset), ElementsAre(0, 10, 20, 30, 40, 50, 60, 70));
  EXPECT_THAT(ints(part(Dataset::range(3), AutoShardPolicy::HINT, 2, 1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(ints(part(Dataset::range(4).shard(SHARD_HINT, 0), AutoShardPolicy::HINT, 2, 1)),
              ElementsAre(1, 3));
}

TEST(AutoShard, OneWorkerGetsTheDatasetItself) {
  const Dataset dataset = with_policy(Dataset::range(4), AutoShardPolicy::FILE);
  EXPECT_EQ(auto_shard(dataset, {.num_workers = 1, .index = 0}).node(), dataset.node());
}

TEST(AutoShard, TheIndexMustBeAWorkers) {
  for (const int64_t index : {-1, 2, 3}) {
    EXPECT_THROW(part(Dataset::range(4), AutoShardPolicy::DATA, 2, index), InvalidArgumentError);
    EXPECT_THROW(part(Dataset::range(4), AutoShardPolicy::OFF, 2, index), InvalidArgumentError);
  }
  EXPECT_THROW(part(Dataset::range(4), AutoShardPolicy::DATA, 0, 0), InvalidArgumentError);
}

TEST(AutoShard, PromisesAboutTheWholeAreLeftOut) {
  const auto sharded =
      internal::auto_shard_graph(Dataset::range(4).assert_cardinality(4).node(),
                                 AutoShardPolicy::DATA, {.num_workers = 2, .index = 1});
  EXPECT_THAT(ints(Dataset(sharded.root)), ElementsAre(1, 3));
  ASSERT_EQ(sharded.notes.size(), 1U);
  EXPECT_THAT(sharded.notes[0], HasSubstr("assert_cardinality"));
  EXPECT_THAT(ints(part(files(2).assert_cardinality(20), AutoShardPolicy::FILE, 2, 1)),
              ElementsAreArray(records({1})));
}

TEST(AutoShard, FewerFilesThanWorkersIsAnErrorOnEachBeforeTheFirstElement) {
  for (int64_t worker = 0; worker < 4; ++worker) {
    for (const Dataset& names :
         {Dataset::range(3), sequential(Dataset::range(3)), Dataset::range(3).shuffle(3)}) {
      auto iterator = part(reader(names), AutoShardPolicy::FILE, 4, worker).iterator();
      EXPECT_THAT(thrown<InvalidArgumentError>([&] { iterator.next(); }),
                  HasSubstr("3 files, which is not enough for the required 4 shards/workers"))
          << worker;
      EXPECT_FALSE(iterator.next());
    }
  }
  EXPECT_THAT(ints(part(files(0), AutoShardPolicy::FILE, 4, 1)), IsEmpty());
}

TEST(AutoShard, TooFewFilesOfALaterBranchAreFoundBeforeTheFirstElement) {
  const Dataset two = files(3).concatenate(files(1));
  const Dataset nested = files(4).concatenate(reader(Dataset::range(1).shuffle(5))).repeat(2);
  const Dataset zipped = Dataset::zip({files(3), files(1)});
  for (const Dataset& dataset : {two.batch(2), two.prefetch(1), nested, zipped, two.skip(1)}) {
    for (int64_t worker = 0; worker < 2; ++worker) {
      auto iterator = part(dataset, AutoShardPolicy::FILE, 2, worker).iterator();
      EXPECT_THAT(thrown<InvalidArgumentError>([&] { iterator.next(); }),
                  HasSubstr("1 file, which is not enough for the required 2 shards/workers"))
          << dataset.explain();
      EXPECT_FALSE(iterator.next());
    }
  }
  EXPECT_THAT(ints(part(files(2).concatenate(files(0)), AutoShardPolicy::FILE, 2, 1)),
              ElementsAreArray(records({1})));
}

TEST(AutoShard, FewerElementsThanWorkersIsAnErrorOnThoseThatGotOne) {
  for (const Dataset& dataset : {Dataset::range(2), sequential(Dataset::range(2))}) {
    for (const int64_t worker : {0, 1}) {
      EXPECT_THAT(thrown<InvalidArgumentError>(
                      [&] { ints(part(dataset, AutoShardPolicy::DATA, 3, worker)); }),
                  HasSubstr("2 elements, which is not enough for the required 3 shards/workers"));
    }
    EXPECT_THAT(ints(part(dataset, AutoShardPolicy::DATA, 3, 2)), IsEmpty());
  }
  EXPECT_THAT(ints(part(sequential(Dataset::range(3)), AutoShardPolicy::DATA, 3, 2)),
              ElementsAre(2));
  EXPECT_THAT(ints(part(Dataset::range(0), AutoShardPolicy::DATA, 3, 0)), IsEmpty());
}

TEST(AutoShard, AnyPlaceIsRestored) {
  for (const auto& whole : {sequential(Dataset::range(11)), files(4)}) {
    const Dataset dataset = part(whole, AutoShardPolicy::AUTO, 3, 1);
    const std::vector<int64_t> all = ints(dataset);
    for (size_t taken = 0; taken <= all.size(); ++taken) {
      auto iterator = dataset.iterator();
      for (size_t i = 0; i < taken; ++i) iterator.next();
      auto resumed = dataset.iterator();
      resumed.restore(IteratorState::parse(iterator.state().serialize()));
      EXPECT_THAT(ints(resumed),
                  ElementsAreArray(all.begin() + static_cast<long>(taken), all.end()));
    }
  }
}

TEST(AutoShard, AShortageStaysOneAfterARestore) {
  const Dataset dataset = part(files(1), AutoShardPolicy::FILE, 2, 0);
  auto iterator = dataset.iterator();
  EXPECT_THROW(iterator.next(), InvalidArgumentError);
  auto resumed = dataset.iterator();
  resumed.restore(iterator.state());
  EXPECT_THROW(resumed.next(), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
