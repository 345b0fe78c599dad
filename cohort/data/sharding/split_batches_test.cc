#include "cohort/data/sharding/split_batches.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/sharding/batch_sizes.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(SplitBatches, FollowsTheGuidesRule) {
  EXPECT_THAT(texts(split_batches(Dataset::range(6).batch(4), 2)),
              ElementsAre("[0, 1]", "[2, 3]", "[4]", "[5]"));
  EXPECT_THAT(texts(split_batches(Dataset::range(8).batch(4), 3)),
              ElementsAre("[0, 1]", "[2, 3]", "[]", "[4, 5]", "[6, 7]", "[]"));
  EXPECT_THAT(texts(split_batches(Dataset::range(9).batch(4), 2)),
              ElementsAre("[0, 1]", "[2, 3]", "[4, 5]", "[6, 7]", "[8]", "[]"));
  EXPECT_THAT(texts(split_batches(Dataset::range(10).batch(4, {.drop_remainder = true}), 2)),
              ElementsAre("[0, 1]", "[2, 3]", "[4, 5]", "[6, 7]"));
  EXPECT_THAT(texts(split_batches(Dataset::range(3).batch(2), 1)), ElementsAre("[0, 1]", "[2]"));
}

TEST(SplitBatches, PiecesAreViews) {
  const Tensor rows = at::arange(8);
  auto iterator = split_batches(Dataset::from_tensor_slices(rows).batch(8), 4).iterator();
  while (const auto piece = iterator.next()) EXPECT_TRUE(piece->tensor().is_alias_of(rows));
}

// What one replica does to its piece in place is nothing to the tape of another.
TEST(SplitBatches, PiecesHaveVersionsOfTheirOwn) {
  auto iterator = split_batches(Dataset::from_tensor_slices(at::ones({4})).batch(4), 2).iterator();
  const Tensor first = iterator.get_next().tensor();
  const Tensor second = iterator.get_next().tensor();
  const auto version = first.unsafeGetTensorImpl()->version_counter().current_version();
  second.add_(1);
  EXPECT_EQ(first.unsafeGetTensorImpl()->version_counter().current_version(), version);
}

TEST(SplitBatches, WhatIsNoBatchIsRefused) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { split_batches(Dataset::range(4), 2); }),
              HasSubstr("call `batch`"));
  EXPECT_THROW(split_batches(Dataset::range(4).batch(2), 0), InvalidArgumentError);
}

// Vectors that are examples have a first dimension, too: it is none of a batch.
TEST(SplitBatches, SingleExamplesAreRefusedWhateverTheirShape) {
  const Dataset vectors = Dataset::from_tensor_slices(tuple(at::ones({6, 4}), at::ones({6, 4})));
  const auto refusal = [](const Dataset& dataset) {
    return thrown<InvalidArgumentError>([&] { split_batches(dataset, 2); });
  };
  const auto twice = [](const Tensor& x, const Tensor& y) { return tuple(x * 2, y); };
  const Dataset named = Dataset::from_tensor_slices(dict({{"x", at::ones({6, 4})}}));
  for (const Dataset& dataset :
       {vectors, vectors.shuffle(6, {.seed = 1}), vectors.repeat(2).take(7).skip(1),
        vectors.filter([](const Tensor&, const Tensor&) { return true; }),
        vectors.cache().prefetch(2), vectors.shard(2, 0), vectors.concatenate(vectors),
        Dataset::zip({vectors, vectors}), vectors.map(twice),
        vectors.map(twice, {.num_parallel_calls = 2}).map(twice),
        named.map([](const Structure& row) {
          return dict({{"x", row["x"].tensor() + 1}});
        })}) {
    EXPECT_THAT(refusal(dataset), AllOf(HasSubstr("are single examples"),
                                        HasSubstr("call `.batch(n)` on the dataset first")))
        << dataset.explain();
  }
}

// Functions may make batches by hand, and so may the source of a generator.
TEST(SplitBatches, WhatMayBeABatchIsSplit) {
  const Dataset examples = Dataset::from_tensor_slices(at::arange(12).reshape({6, 2}));
  const auto generator = Dataset::from_generator([i = 0]() mutable -> std::optional<Tensor> {
    if (i++ == 1) return std::nullopt;
    return at::arange(2);
  });
  for (const Dataset& dataset :
       {examples.rebatch(2), examples.padded_batch(3),
        examples.batch(2).map([](const Tensor& x) { return x + 1; }),
        examples.map([](const Tensor& x) {
          return at::stack({x, x});
        }),
        examples.map([](const Tensor& ids) { return tuple(ids, ids * 2); }),
        Dataset::from_tensors(at::ones({4})).repeat(2), generator,
        Dataset::range(3).map([](int64_t i) { return at::full({4}, i); }),
        examples.flat_map([](const Tensor& x) { return Dataset::from_tensors(x); })}) {
    EXPECT_NO_THROW(texts(split_batches(dataset, 2))) << dataset.explain();
  }
  EXPECT_EQ(compute_batch_size(examples.map([](const Tensor& x) { return x + 1; },
                                            {.output_spec = TensorSpec({kUnknownDim}, int64)})),
            kUnknownBatchSize);
}

TEST(SplitBatches, AFailedBatchIsAsManyFailedPieces) {
  const Dataset dataset = split_batches(Dataset::range(3).map([](int64_t i) {
    if (i == 1) throw NotFoundError("no batch");
    return Tensor(at::ones({2}, int64) * i);
  }),
                                        2);
  auto iterator = dataset.iterator();
  std::vector<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    try {
      seen.push_back(internal::str(*iterator.next()));
    } catch (const NotFoundError&) {
      seen.emplace_back("failed");
    }
  }
  EXPECT_THAT(seen, ElementsAre("[0]", "[0]", "failed", "failed", "[2]", "[2]"));
  EXPECT_FALSE(iterator.next());
}

TEST(SplitBatches, AnyPlaceIsRestored) {
  const Dataset dataset =
      split_batches(sequential(Dataset::range(20)).shuffle(6, {.seed = 3}).batch(6), 4);
  const auto all = texts(dataset);
  ASSERT_EQ(all.size(), 16U);
  for (size_t taken = 0; taken <= all.size(); ++taken) {
    auto iterator = dataset.iterator();
    for (size_t i = 0; i < taken; ++i) iterator.next();
    const auto state = IteratorState::parse(iterator.state().serialize());
    auto resumed = dataset.iterator();
    resumed.restore(state);
    EXPECT_EQ(resumed.state().serialize(), state.serialize());
    // The restored iterator gives the same elements as the one that went on (both of pass 1).
    EXPECT_EQ(texts(resumed), texts(iterator)) << taken;
  }
}

TEST(SplitBatches, StatesBetweenBatchesFitAnyNumberOfPieces) {
  const Dataset batches = Dataset::range(20).batch(6);
  auto iterator = split_batches(batches, 2).iterator();
  for (int i = 0; i < 2; ++i) iterator.next();
  const auto between = iterator.state();
  iterator.next();
  const auto within = iterator.state();

  auto resumed = split_batches(batches, 3).iterator();
  resumed.restore(between);
  EXPECT_EQ(internal::str(*resumed.next()), "[6, 7]");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { resumed.restore(within); }),
              HasSubstr("cut into 2 pieces"));
  auto whole = batches.iterator();
  whole.restore(between);
  EXPECT_EQ(internal::str(*whole.next()), "[6, 7, 8, 9, 10, 11]");
}

TEST(SplitBatches, SkippingIsReading) {
  const Dataset dataset = split_batches(sequential(Dataset::range(20)).batch(6), 4);
  const auto all = texts(dataset);
  for (size_t taken = 0; taken < 6; ++taken) {
    for (int64_t n = 0; n <= 18; ++n) {
      auto rest = texts(dataset.skip(static_cast<int64_t>(taken)).skip(n));
      const size_t from = std::min(all.size(), taken + static_cast<size_t>(n));
      EXPECT_THAT(rest, ElementsAreArray(all.begin() + static_cast<long>(from), all.end()));
    }
  }
}

TEST(SplitBatches, KnowsItsSpecAndCardinality) {
  const auto rows = [](const Dataset& dataset) { return *dataset.element_spec().leaf().shape(); };
  const Dataset full = Dataset::range(10).batch(4, {.drop_remainder = true});
  EXPECT_THAT(rows(split_batches(full, 2)), ElementsAre(2));
  EXPECT_THAT(rows(split_batches(full, 3)), ElementsAre(kUnknownDim));
  EXPECT_THAT(rows(split_batches(Dataset::range(10).batch(4), 2)), ElementsAre(kUnknownDim));
  EXPECT_EQ(split_batches(full, 3).cardinality(), 6);
  EXPECT_EQ(split_batches(full.repeat(), 3).cardinality(), kInfiniteCardinality);
}

TEST(BatchSizes, AreCyclicAndAddUp) {
  for (const int64_t worker : {0, 1}) {
    EXPECT_THAT(batch_sizes_for_worker(8, 2, 2, worker), ElementsAre(2, 2, 2, 2));
  }
  EXPECT_THAT(batch_sizes_for_worker(4, 3, 1, 0), ElementsAre(2, 1, 1));
  EXPECT_THAT(batch_sizes_for_worker(4, 3, 1, 1), ElementsAre(1, 1, 2));
  EXPECT_THAT(batch_sizes_for_worker(4, 3, 1, 2), ElementsAre(1, 2, 1));
  EXPECT_THAT(batch_sizes_for_worker(4, 1, 5, 0), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(batch_sizes_for_worker(10, 2, 2, 0), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(batch_sizes_for_worker(10, 2, 2, 1), ElementsAre(2, 2, 3, 3));
}

TEST(BatchSizes, EachStepTakesAGlobalBatch) {
  for (const int64_t batch : {0, 1, 4, 7, 12}) {
    for (const int64_t workers : {1, 2, 3, 5}) {
      for (const int64_t replicas : {1, 2, 5}) {
        std::vector<int64_t> steps(static_cast<size_t>(workers), 0);
        for (int64_t worker = 0; worker < workers; ++worker) {
          const auto sizes = batch_sizes_for_worker(batch, workers, replicas, worker);
          ASSERT_EQ(sizes.size(), static_cast<size_t>(workers * replicas));
          const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
          EXPECT_LE(*most - *least, 1);
          for (size_t i = 0; i < sizes.size(); ++i) steps[i / replicas] += sizes[i];
        }
        for (const int64_t step : steps) EXPECT_EQ(step, batch);
      }
    }
  }
}

TEST(BatchSizes, ArgumentsAreChecked) {
  EXPECT_THROW(batch_sizes_for_worker(-1, 1, 1, 0), InvalidArgumentError);
  EXPECT_THROW(batch_sizes_for_worker(4, 0, 1, 0), InvalidArgumentError);
  EXPECT_THROW(batch_sizes_for_worker(4, 1, 0, 0), InvalidArgumentError);
  EXPECT_THROW(batch_sizes_for_worker(4, 2, 1, 2), InvalidArgumentError);
  EXPECT_THROW(batch_sizes_for_worker(4, 2, 1, -1), InvalidArgumentError);
}

TEST(ComputeBatchSize, ComesFromTheSpecOrTheTransformations) {
  const Dataset batches = Dataset::range(12).batch(4);
  EXPECT_EQ(compute_batch_size(Dataset::range(12).batch(4, {.drop_remainder = true})), 4);
  EXPECT_EQ(compute_batch_size(batches), 4);
  EXPECT_EQ(compute_batch_size(batches.take(2).prefetch(1)), 4);
  EXPECT_EQ(compute_batch_size(Dataset::zip({batches, batches})), 4);
  EXPECT_EQ(compute_batch_size(Dataset::zip({batches, Dataset::range(12).batch(3)})), -1);
  EXPECT_EQ(compute_batch_size(batches.map([](const Tensor& x) { return x; })), -1);
  EXPECT_EQ(compute_batch_size(Dataset::from_tensors(tuple(at::ones({4}), at::ones({3})))), -1);
  EXPECT_EQ(compute_batch_size(Dataset::from_tensors(at::ones({4, 2})).repeat(3)), 4);
  EXPECT_THROW(compute_batch_size(Dataset::range(4)), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
