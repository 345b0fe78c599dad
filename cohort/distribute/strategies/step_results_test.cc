// What steps take and return besides tensors: numbers, pairs, tuples, structs.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <tuple>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Losses {
  Tensor sum;
  double weight = 0;
};

class StepResults : public ::testing::Test {
 protected:
  // Replica 0 gets 0, 1, replica 1 gets 2, 3; the second member is ten times that.
  DistributedDataset batches() const {
    return strategy.experimental_distribute_dataset(
        data::Dataset::range(4).map([](auto x) { return std::pair(x, x * 10); }).batch(4));
  }

  MirroredStrategy strategy = mirrored(2);
  PerReplica<Structure> batch = batches().iterator().get_next();
};

TEST_F(StepResults, GenericStepsTakeTheBatchOrItsMembers) {
  EXPECT_THAT(values(strategy.run([](auto x, auto y) { return (x + y).sum(); }, batch)),
              ElementsAre(11, 55));
  EXPECT_THAT(values(strategy.run([](auto both) { return (both[0] - both[1]).sum(); }, batch)),
              ElementsAre(-9, -45));
  EXPECT_THAT(
      values(strategy.run([](ReplicaContext& context, auto x,
                             auto y) { return x.sum() * context.replica_id_in_sync_group(); },
                          batch)),
      ElementsAre(0, 5));
}

TEST_F(StepResults, NumbersReduceToATensor) {
  const auto losses =
      strategy.run([](const Tensor& x, const Tensor&) { return x.sum().item<double>(); }, batch);
  const Tensor sum = strategy.reduce(ReduceOp::SUM, losses);
  EXPECT_EQ(sum.item<double>(), 6);
  EXPECT_EQ(sum.scalar_type(), float64);
  EXPECT_EQ(strategy.reduce("mean", losses).item<double>(), 3);
}

TEST_F(StepResults, PairsAreBoundAndReduced) {
  const auto results = strategy.run(
      [](const Tensor& x, const Tensor& y) { return std::pair(x.sum(), y.numel()); }, batch);
  const auto& [sums, counts] = results;
  EXPECT_THAT(values(sums), ElementsAre(1, 5));
  EXPECT_THAT(counts.values(), ElementsAre(2, 2));
  const auto [sum, count] = strategy.reduce(ReduceOp::SUM, results);
  EXPECT_EQ(sum.item<int64_t>(), 6);
  EXPECT_EQ(count.item<int64_t>(), 4);
  std::ostringstream out;
  out << results;
  EXPECT_THAT(out.str(), HasSubstr("(PerReplica:{\n  0: 1,\n  1: 5\n}, PerReplica:{\n"));
}

TEST_F(StepResults, StructsAreDetachedReducedAndTakenApart) {
  const auto results = strategy.run(
      [](const Tensor& x, const Tensor&) {
        Tensor weight = at::full({}, 2.).requires_grad_();
        return Losses{(x * weight).sum(), 0.5};
      },
      batch);
  EXPECT_FALSE(results.value(0).sum.requires_grad());
  EXPECT_THAT(values(results[&Losses::sum]), ElementsAre(2, 10));
  const Losses total = strategy.reduce(ReduceOp::SUM, results);
  EXPECT_EQ(total.sum.item<double>(), 12);
  EXPECT_EQ(total.weight, 1);
}

TEST_F(StepResults, MembersAreGathered) {
  const auto [x, y] =
      strategy.gather(strategy.run([](auto x, auto y) { return std::tuple(x, y); }, batch), 0);
  EXPECT_EQ(x.sum().template item<int64_t>(), 6);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({4}));
  EXPECT_EQ(strategy.gather(batch, 0)[1].tensor().sum().item<int64_t>(), 60);
}

TEST_F(StepResults, ReplicasReduceAndGatherStructures) {
  strategy.run(
      [](ReplicaContext& context, const Tensor& x, const Tensor& y) {
        const auto [sum, rows] = context.all_reduce(ReduceOp::SUM, std::pair(x, 2.));
        EXPECT_EQ(sum.sum().item<int64_t>(), 6);
        EXPECT_EQ(rows.item<double>(), 4);
        const Losses losses = context.all_reduce(ReduceOp::SUM, Losses{y, 1.});
        EXPECT_EQ(losses.sum.sum().item<int64_t>(), 60);
        EXPECT_EQ(losses.weight, 2);
        const std::vector<Tensor> sums =
            context.all_reduce(ReduceOp::SUM, std::vector<Tensor>{x, y});
        EXPECT_EQ(sums[1].sum().item<int64_t>(), 60);
        const Structure nested = context.all_gather(dict({{"x", x}, {"both", tuple(x, y)}}), 0);
        EXPECT_EQ(nested["both"][1].tensor().numel(), 4);
        EXPECT_EQ(nested["x"].tensor().sum().item<int64_t>(), 6);
        EXPECT_EQ(std::get<0>(context.all_gather(std::tuple(y), 0)).numel(), 4);
      },
      batch);
}

TEST_F(StepResults, BatchesOfThreeMembersAreBound) {
  const data::Dataset three =
      data::Dataset::range(2).map([](int64_t x) { return std::tuple(x, x + 10, x + 20); }).batch(2);
  int steps = 0;
  for (auto [x, y, z] : unpack<3>(strategy.experimental_distribute_dataset(three))) {
    EXPECT_EQ(
        strategy
            .reduce(ReduceOp::SUM,
                    strategy.run([](auto a, auto b, auto c) { return (a + b * c).sum(); }, x, y, z))
            .item<int64_t>(),
        0 + 10 * 20 + 1 + 11 * 21);
    ++steps;
  }
  EXPECT_EQ(steps, 1);
  for (auto [x, y, z] : unpack<3>(three)) EXPECT_EQ((x + y + z).sum().item<int64_t>(), 63);
  EXPECT_THROW(unpack<3>(batch), InvalidArgumentError);
}

TEST_F(StepResults, AnOptionalBatchPrints) {
  DistributedIterator iterator = batches().iterator();
  std::ostringstream out;
  out << iterator.next().has_value() << iterator.next();
  EXPECT_EQ(out.str(), "1nullopt");
}

TEST_F(StepResults, TapesTakeVariablesInBraces) {
  auto scope = strategy.scope();
  const Variable weight(at::full({}, 3.));
  const auto gradients = strategy.run([&] {
    GradientTape tape;
    const Tensor loss = weight.value() * weight.value();
    return tape.gradient(loss, {weight})[0];
  });
  EXPECT_THAT(values(gradients), ElementsAre(6, 6));
}

TEST(Strategies, AreChosenAndKeptAsHandles) {
  const MirroredStrategy two = mirrored(2);
  const OneDeviceStrategy one("CPU:0");
  for (const bool several : {false, true}) {
    const Strategy chosen = several ? Strategy(two) : Strategy(one);
    EXPECT_EQ(chosen.num_replicas_in_sync(), several ? 2 : 1);
    EXPECT_EQ(chosen == two, several);
  }
  std::vector<Strategy> all{two, one};
  all.push_back(two);
  EXPECT_EQ(all[2], two);
  std::optional<Strategy> maybe;
  maybe = one;
  EXPECT_EQ(maybe->num_replicas_in_sync(), 1);
}

}  // namespace
}  // namespace cohort::distribute
