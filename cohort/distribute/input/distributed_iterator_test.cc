#include "cohort/distribute/input/distributed_iterator.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::distribute {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DistributedIterator, HasEveryFormOfNext) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(4).batch(2));
  DistributedIterator it = dataset.iterator();
  EXPECT_EQ(text(it.get_next()), "[0][1]");
  const auto optional = it.get_next_as_optional();
  ASSERT_TRUE(optional.has_value());
  EXPECT_EQ(text(optional.get_value()), "[2][3]");
  EXPECT_FALSE(it.next());
  EXPECT_THROW(it.get_next(), OutOfRangeError);
  EXPECT_THROW(it.get_next_as_optional().get_value(), InvalidArgumentError);
}

TEST(DistributedIterator, OptionalBatchesEndALoop) {
  const MirroredStrategy strategy = mirrored(4);
  DistributedIterator it =
      strategy.experimental_distribute_dataset(Dataset::range(9).batch(4)).iterator();
  std::vector<std::string> steps;
  for (int i = 0; i < 5; ++i) {
    const auto batch = it.get_next_as_optional();
    if (!batch.has_value()) break;
    steps.push_back(text(batch.get_value()));
  }
  EXPECT_THAT(steps, ElementsAre("[0][1][2][3]", "[4][5][6][7]", "[8][][][]"));
}

// As TensorFlow: only get_next leaves it out where all shapes are known.
TEST(DistributedIterator, OptionalBatchesHaveAnIncompleteLastStepOfKnownShapes) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.distribute_datasets_from_function(
      [](const InputContext&) { return Dataset::range(6).batch(2, {.drop_remainder = true}); });
  DistributedIterator it = dataset.iterator();
  EXPECT_EQ(text(it.get_next_as_optional().get_value()), "[0,1][2,3]");
  EXPECT_FALSE(it.has_next());
  EXPECT_EQ(text(it.get_next_as_optional().get_value()), "[4,5][]");
  EXPECT_FALSE(it.get_next_as_optional().has_value());
}

TEST(DistributedIterator, AnEmptyDatasetEndsAtOnce) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_FALSE(strategy.experimental_distribute_dataset(Dataset::range(0).batch(2))
                   .iterator()
                   .get_next_as_optional()
                   .has_value());
}

TEST(DistributedIterator, ReplicasWithoutDataGetBatchesOfNoRows) {
  const MirroredStrategy strategy = mirrored(4);
  const Dataset dataset = Dataset::from_tensors(tuple(at::ones({1}), StringTensor({"a"})))
                              .repeat(64)
                              .batch(16)
                              .batch(4);
  DistributedIterator it = from_function(strategy, dataset).iterator();
  const auto batch = it.get_next();
  EXPECT_THAT(batch.value(0)[0].leaf().sizes(), ElementsAre(4, 16, 1));
  for (size_t replica = 1; replica < 4; ++replica) {
    EXPECT_THAT(batch.value(replica)[0].leaf().sizes(), ElementsAre(0, 0, 1));
    EXPECT_EQ(batch.value(replica)[0].tensor().scalar_type(), at::kFloat);
    EXPECT_THAT(batch.value(replica)[1].strings().sizes(), ElementsAre(0, 0, 1));
  }
  EXPECT_FALSE(it.next());
}

TEST(DistributedIterator, OfKnownShapesTheIncompleteLastStepIsLeftOut) {
  const MirroredStrategy strategy = mirrored(2);
  const Dataset known = Dataset::range(10).batch(2, {.drop_remainder = true});
  EXPECT_THAT(all(from_function(strategy, known)), ElementsAre("[0,1][2,3]", "[4,5][6,7]"));
  EXPECT_EQ(from_function(strategy, known).cardinality(), 2);
  const Dataset open = Dataset::range(10).batch(2);
  EXPECT_THAT(all(from_function(strategy, open)),
              ElementsAre("[0,1][2,3]", "[4,5][6,7]", "[8,9][]"));
  EXPECT_EQ(from_function(strategy, open).cardinality(), 3);
}

TEST(DistributedIterator, OfSeveralWorkersTheLastStepIsAlwaysFilledUp) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = get_distributed_datasets_from_function(
      [](const InputContext& context) {
        return Dataset::range(context.input_pipeline_id == 0 ? 6 : 2)
            .batch(2, {.drop_remainder = true});
      },
      cpu_workers(2, 1), contexts(2), strategy);
  EXPECT_THAT(all(dataset), ElementsAre("[0,1][0,1]", "[2,3][]", "[4,5][]"));
  EXPECT_THAT(*dataset.element_spec().component.leaf().shape(), ElementsAre(kUnknownDim));
}

TEST(DistributedIterator, ASecondThreadIsRefusedAndTheFirstIsNotDisturbed) {
  const MirroredStrategy strategy = mirrored(2);
  std::latch refused(1);
  const auto wait_at_2 = [&](const Tensor& batch) {
    if (batch[0].item<int64_t>() == 2) refused.wait();
    return batch;
  };
  const Dataset source = Dataset::range(8).batch(2).map(
      wait_at_2, {.output_spec = TensorSpec(std::vector<int64_t>{2}, int64)});
  DistributedIterator it = strategy.experimental_distribute_dataset(source).iterator();
  it.next();
  std::optional<PerReplica<Structure>> second;
  std::string error;
  const auto read = [&] {  // one of two threads waits in its call until the other was refused
    try {
      second = it.next();
    } catch (const FailedPreconditionError& refusal) {
      error = refusal.what();
      refused.count_down();
    }
  };
  std::thread one(read), other(read);
  one.join();
  other.join();
  EXPECT_THAT(error, HasSubstr("a distributed iterator was used while it is in use already"));
  EXPECT_EQ(text(*second), "[2][3]");
  EXPECT_EQ(text(it.get_next()), "[4][5]");
}

// What `call` is refused with while the iterator is in a call: the function of the dataset stands
// for a second thread.
std::string refused_inside(int workers, const std::function<void(DistributedIterator&)>& call) {
  const MirroredStrategy strategy = mirrored(2);
  std::string refusal;
  std::optional<DistributedIterator> it;
  const auto dataset = get_distributed_datasets_from_function(
      [&](const InputContext&) {
        return Dataset::range(4).map([&](int64_t x) {
          try {
            if (x == 0 && it) call(*it);
          } catch (const FailedPreconditionError& error) {
            refusal = error.what();
          }
          return x;
        });
      },
      cpu_workers(workers, 2 / workers), contexts(workers), strategy);
  it = dataset.iterator();
  EXPECT_TRUE(it->next());
  return refusal;
}

TEST(DistributedIterator, EveryCallIsRefusedWhileAnotherIsUnderWay) {
  const auto refused = HasSubstr("a distributed iterator was used while it is in use already");
  for (const int workers : {1, 2}) {
    using Iterator = DistributedIterator;
    EXPECT_THAT(refused_inside(workers, [](Iterator& it) { it.has_next(); }), refused);
    EXPECT_THAT(refused_inside(workers, [](Iterator& it) { it.state(); }), refused);
    EXPECT_THAT(refused_inside(workers, [](Iterator& it) { it.trackable()->checkpoint_values(); }),
                refused);
  }
}

TEST(DistributedIterator, AFailedBatchTakesItsStepAndNoOther) {
  const Dataset source = Dataset::range(6).map([](int64_t i) {
    if (i == 2) throw NotFoundError("spoilt");
    return Tensor(at::arange(4) + 10 * i);
  });
  const auto steps = [](const DistributedDataset& dataset) {
    std::vector<std::string> seen;
    DistributedIterator it = dataset.iterator();
    while (true) {
      try {
        const auto batch = it.next();
        if (!batch) return seen;
        seen.push_back(text(*batch));
      } catch (const NotFoundError& error) {
        seen.emplace_back("failed");
      }
    }
  };
  const MirroredStrategy strategy = mirrored(2);
  const auto expected = ElementsAre("[0,1][2,3]", "[10,11][12,13]", "failed", "[30,31][32,33]",
                                    "[40,41][42,43]", "[50,51][52,53]");
  EXPECT_THAT(steps(strategy.experimental_distribute_dataset(source)), expected);
  EXPECT_THAT(steps(get_distributed_dataset(with_policy(source, AutoShardPolicy::DATA),
                                            cpu_workers(2, 1), strategy)),
              expected);
}

TEST(DistributedIterator, NextInAReplicaIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  DistributedIterator it =
      strategy.experimental_distribute_dataset(Dataset::range(4).batch(2)).iterator();
  EXPECT_THROW(strategy.run([&] { it.next(); }), FailedPreconditionError);
}

TEST(DistributedIterator, NextInAnotherStrategysScopeIsRefusedAndTakesNothing) {
  const MirroredStrategy strategy = mirrored(2);
  const MirroredStrategy other({"CPU:0"});
  const Dataset source = Dataset::range(8).batch(2);
  const auto dataset = strategy.experimental_distribute_dataset(source);
  DistributedIterator it = dataset.iterator();
  {
    auto scope = other.scope();
    try {
      it.next();
      ADD_FAILURE() << "accepted";
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(), HasSubstr("Mixing different tf.distribute.Strategy objects"));
    }
    EXPECT_THROW(it.get_next_as_optional(), FailedPreconditionError);
    EXPECT_THROW(dataset.begin(), FailedPreconditionError);
  }
  EXPECT_EQ(text(it.get_next()), "[0][1]");
  auto scope = strategy.scope();
  EXPECT_EQ(text(it.get_next()), "[2][3]");
}

TEST(DistributedIterator, OfTheDefaultStrategyIsAPlainOneInEveryScope) {
  const Dataset source = Dataset::range(2).batch(2);
  DistributedIterator plain = get_strategy().experimental_distribute_dataset(source).iterator();
  const MirroredStrategy strategy = mirrored(2);
  DistributedIterator it = strategy.experimental_distribute_dataset(source).iterator();
  {
    auto scope = strategy.scope();
    EXPECT_EQ(text(plain.get_next()), "[0,1]");
  }
  const Strategy none = get_strategy();
  auto scope = none.scope();
  EXPECT_EQ(text(it.get_next()), "[0][1]");
}

TEST(DistributedIterator, BatchesThatAreNotFetchedAreForTheHost) {
  const MirroredStrategy strategy = mirrored(2);
  const InputOptions not_fetched{.experimental_fetch_to_device = false};
  const InputWorkers workers = strategy.extended().input_workers(not_fetched);
  EXPECT_EQ(workers,
            InputWorkers({{.input_device = "CPU:0", .compute_devices = {"CPU:0", "CPU:0"}}}));
  EXPECT_EQ(strategy.extended().input_workers({.experimental_fetch_to_device = true}),
            cpu_workers(1, 2));
  const auto dataset = get_distributed_dataset(Dataset::range(4).batch(4), workers, strategy,
                                               {.input = not_fetched});
  EXPECT_THAT(all(dataset), ElementsAre("[0,1][2,3]"));
}

TEST(DistributedIterator, LeavingALoopEarlyIsAllowed) {
  const MirroredStrategy strategy = mirrored(2);
  DistributedIterator it =
      strategy.experimental_distribute_dataset(Dataset::range(8).batch(2)).iterator();
  for (const auto& batch : it) {
    if (text(batch) == "[2][3]") break;
  }
  EXPECT_EQ(text(it.get_next()), "[4][5]");
}

// Of a step that is not whole, what elements look like is found out by reading one.
TEST(DistributedIterator, TheLastStepIsFilledUpAlsoWhereTheFirstElementFails) {
  const MirroredStrategy strategy = mirrored(2);
  const auto fail = [](const Tensor& x) {
    if (x.item<int64_t>() == 0) throw NotFoundError("no such thing");
    return x;
  };
  DistributedIterator it = from_function(strategy, Dataset::range(3).map(fail).batch(1)).iterator();
  EXPECT_THROW(it.next(), NotFoundError);
  EXPECT_EQ(text(it.get_next()), "[2][]");
  EXPECT_FALSE(it.next());
}

TEST(DistributedIterator, PositionsAreThoseOfTheWholeDataset) {
  const MirroredStrategy strategy = mirrored(4);
  const Dataset source = Dataset::range(16).batch(8);
  DistributedIterator one = strategy.experimental_distribute_dataset(source).iterator();
  EXPECT_THROW(one.positions(), FailedPreconditionError);
  one.get_next();
  EXPECT_THAT(one.positions(), ElementsAre(0, 1, 2, 3));
  one.get_next();
  EXPECT_THAT(one.positions(), ElementsAre(4, 5, 6, 7));

  const auto workers = cpu_workers(2, 2);
  DistributedIterator two = get_distributed_dataset(source, workers, strategy).iterator();
  EXPECT_EQ(text(two.get_next()), "[0,1][4,5][2,3][6,7]");
  EXPECT_THAT(two.positions(), ElementsAre(0, 2, 1, 3));
  DistributedIterator off =
      get_distributed_dataset(with_policy(source, AutoShardPolicy::OFF), workers, strategy)
          .iterator();
  off.get_next();
  EXPECT_THROW(off.positions(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::distribute
