#include "cohort/distribute/strategies/ordered_results.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::Dataset;

Tensor twice(const Tensor& x) { return 2 * x; }

TEST(OrderedResults, ComeInTheOrderOfTheDataset) {
  for (const int replicas : {1, 2, 4}) {
    const MirroredStrategy strategy = mirrored(replicas);
    const Structure results = run_in_order(strategy, Dataset::range(23).batch(6), twice);
    EXPECT_TRUE(results.tensor().equal(2 * at::arange(23))) << replicas;
  }
}

TEST(OrderedResults, OfAnEmptyDatasetAreNone) {
  const MirroredStrategy strategy = mirrored(2);
  const Structure none = run_in_order(strategy, Dataset::range(0).batch(6), twice);
  EXPECT_EQ(internal::str(none), "()");
  EXPECT_THROW(OrderedResults().concat(), FailedPreconditionError);
}

TEST(OrderedResults, OfSeveralWorkersToo) {
  const MirroredStrategy strategy = mirrored(4);
  DistributedIterator it =
      get_distributed_dataset(with_policy(Dataset::range(23).batch(6), data::AutoShardPolicy::DATA),
                              cpu_workers(2, 2), strategy)
          .iterator();
  OrderedResults results;
  while (const auto batch = it.next()) results.add(it.positions(), strategy.run(twice, *batch));
  EXPECT_TRUE(results.concat().tensor().equal(2 * at::arange(23)));
}

TEST(OrderedResults, KeepTheFormOfTheStepsResults) {
  const MirroredStrategy strategy = mirrored(3);
  const Structure results = run_in_order(
      strategy, Dataset::from_tensor_slices(StringTensor({"a", "b", "c", "d"})).batch(2),
      [](const Structure& words) { return tuple(words, words); });
  EXPECT_EQ(results[1].strings(), StringTensor({"a", "b", "c", "d"}));
}

TEST(OrderedResults, OfPairsTuplesAndVectorsAreTuples) {
  const MirroredStrategy strategy = mirrored(2);
  const Dataset dataset = Dataset::range(7).batch(4);
  const Structure pairs = run_in_order(strategy, dataset, [](const Tensor& x) {
    return std::pair(x, Structure(dict({{"2x", 2 * x}})));
  });
  EXPECT_TRUE(pairs[0].tensor().equal(at::arange(7)));
  EXPECT_TRUE(pairs[1]["2x"].tensor().equal(2 * at::arange(7)));
  const Structure nested = run_in_order(strategy, dataset, [](const Tensor& x) {
    return std::tuple(std::vector<Tensor>{x, x + 1}, std::pair(x + 2, x + 3), x + 4);
  });
  EXPECT_TRUE(nested[0][1].tensor().equal(at::arange(7) + 1));
  EXPECT_TRUE(nested[1][1].tensor().equal(at::arange(7) + 3));
  EXPECT_TRUE(nested[2].tensor().equal(at::arange(7) + 4));
}

TEST(OrderedResults, SayWhatDoesNotFit) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(OrderedResults().concat(), FailedPreconditionError);
  OrderedResults results;
  EXPECT_THROW(results.add({0}, PerReplica<Tensor>({at::arange(2), at::arange(2)})),
               InvalidArgumentError);
  EXPECT_THROW(
      run_in_order(strategy, Dataset::range(4).batch(2), [](const Tensor& x) { return x.sum(); }),
      InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::distribute
