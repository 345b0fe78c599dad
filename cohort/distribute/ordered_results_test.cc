#include "cohort/distribute/ordered_results.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

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
