// Transforms in steps of simulated GPUs.
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/testing/device/gpu_and_cpu.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/testing_columns.h"

namespace cohort::transform {
namespace {

TEST(GpuTransform, ComputesOnTheHostAndAnswersOnTheReplicasDevice) {
  const testing::SimulatedGpus gpus(2);
  const internal::TemporaryFolder folder;
  const Structure columns =
      dict({{"x", at::tensor({1.F, 2.F, 3.F, 5.F})}, {"city", StringTensor({"a", "b", "a", "c"})}});
  const auto output = analyze_dataset(
      batches(columns),
      [](const Columns& inputs) {
        return Columns{{"x", bucketize(inputs["x"], 2)},
                       {"city", compute_and_apply_vocabulary(inputs["city"])}};
      },
      folder / "output");
  const auto layer = output.transform_features_layer();
  const distribute::MirroredStrategy strategy;
  const auto dataset = data::Dataset::from_tensor_slices(columns).batch(4);
  std::vector<double> buckets, cities;
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
    const auto results = strategy.run(
        [&](const Structure& raw) {
          const Structure features = layer(raw);
          EXPECT_EQ(features["x"].tensor().device(), raw["x"].tensor().device());
          return tuple(features["x"], features["city"]);
        },
        batch);
    for (const Structure& result : results.values()) {
      for (const double bucket : numbers(Structure(result[0].tensor().cpu()))) {
        buckets.push_back(bucket);
      }
      for (const double city : numbers(Structure(result[1].tensor().cpu()))) {
        cities.push_back(city);
      }
    }
  }
  EXPECT_THAT(buckets, ::testing::ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(cities, ::testing::ElementsAre(0, 2, 0, 1));
}

}  // namespace
}  // namespace cohort::transform
