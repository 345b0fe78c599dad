#include "cohort/distribute/strategies/central_storage_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/lookup/static_hash_table.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum VariableAggregation;

const std::string kCpu0 = "/job:localhost/replica:0/task:0/device:CPU:0";
const std::string kCpu1 = "/job:localhost/replica:0/task:0/device:CPU:1";

TEST(CentralStorageStrategy, ChoosesItsDevicesAsTheOriginal) {
  const LogicalCpus cpus(3);
  const CentralStorageStrategy one;  // no GPU here: one CPU, whatever the number of logical ones
  EXPECT_THAT(one.extended().worker_devices(), ElementsAre(kCpu0));
  EXPECT_THAT(one.extended().parameter_devices(), ElementsAre(kCpu0));
  const experimental::CentralStorageStrategy own({"cpu:1"});
  EXPECT_THAT(own.extended().parameter_devices(), ElementsAre(kCpu1));
  const CentralStorageStrategy two({"CPU:1", "CPU:2"});
  EXPECT_EQ(two.num_replicas_in_sync(), 2);
  EXPECT_THAT(two.extended().parameter_devices(), ElementsAre(kCpu0));
  const CentralStorageStrategy elsewhere({"CPU:0", "CPU:2"}, "CPU:1");
  EXPECT_THAT(elsewhere.extended().parameter_devices(), ElementsAre(kCpu1));
  const CentralStorageStrategy parameter_alone(std::nullopt, "CPU:1");
  EXPECT_THAT(parameter_alone.extended().worker_devices(), ElementsAre(kCpu0));
  EXPECT_THAT(parameter_alone.extended().parameter_devices(), ElementsAre(kCpu1));
}

TEST(CentralStorageStrategy, ChecksItsDevices) {
  const LogicalCpus cpus(2);
  EXPECT_THROW(CentralStorageStrategy(std::vector<std::string>()), InvalidArgumentError);
  EXPECT_THROW(CentralStorageStrategy({"CPU:0", "CPU:0"}), InvalidArgumentError);
  EXPECT_THROW(CentralStorageStrategy({"CPU:0", "CPU:7"}), InvalidArgumentError);
  EXPECT_THROW(CentralStorageStrategy({"CPU:0"}, "CPU:7"), InvalidArgumentError);
  EXPECT_THROW(CentralStorageStrategy({"CPU:0"}, "no device"), InvalidArgumentError);
}

class CentralStorage : public ::testing::Test {
 protected:
  Variable make(double initial, VariableAggregation aggregation = NONE) {
    const auto scope = strategy.scope();
    return Variable(number(initial), {.name = "v", .aggregation = aggregation});
  }
  const LogicalCpus cpus{2};
  const CentralStorageStrategy strategy = CentralStorageStrategy({"CPU:0", "CPU:1"});
};

TEST_F(CentralStorage, HasOneCopyOfEachVariableWhichAllReplicasRead) {
  const Variable v = make(1);
  EXPECT_THAT(components(v), ElementsAre(1));
  EXPECT_THAT(strategy.experimental_local_results(v), ::testing::SizeIs(1));
  const auto addresses = strategy.run([&] { return v.value().data_ptr(); });
  EXPECT_EQ(addresses.value(0), addresses.value(1));
  EXPECT_STREQ(v.impl().kind(), "AggregatingVariable");
  std::ostringstream out;
  out << v;
  EXPECT_EQ(out.str(), "<Variable 'v:0' shape=[] dtype=float64 value=1.0>");
}

TEST_F(CentralStorage, AppliesAnUpdateOnce) {
  const Variable v = make(0);
  const auto scope = strategy.scope();
  int calls = 0;
  const auto sums = strategy.extended().batch_reduce_to(
      ReduceOp::SUM, {{PerReplica<Tensor>({number(1), number(1)}), v}});
  ASSERT_EQ(sums[0].size(), 1U);
  strategy.extended().update(
      v,
      [&](Variable& copy, const Tensor& sum) {
        ++calls;
        copy.assign_add(sum);
      },
      sums[0]);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(components(v), ElementsAre(2));
}

TEST_F(CentralStorage, ReplicasThatAssignWithoutAggregationAreRefused) {
  const Variable v = make(1);
  try {
    strategy.run([&] { v.assign(number(2)); });
    FAIL() << "assigned";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("You must specify an aggregation method to update a AggregatingVariable"));
  }
  EXPECT_THAT(components(v), ElementsAre(1));
}

TEST_F(CentralStorage, VariablesOnReadHaveAComponentForEachReplica) {
  auto scope = strategy.scope();
  const Variable v(number(0),
                   {.synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  scope.close();
  strategy.run([&](ReplicaContext& context) {
    v.assign_add(number(1 + context.replica_id_in_sync_group()));
  });
  EXPECT_THAT(components(v), ElementsAre(1, 2));
  EXPECT_EQ(v.value().item<double>(), 3);
}

TEST_F(CentralStorage, ReadsDatasetsAsOtherStrategiesDo) {
  std::vector<std::vector<double>> seen;
  for (const auto& batch :
       strategy.experimental_distribute_dataset(data::Dataset::range(4).batch(2))) {
    const auto doubled = strategy.run([](const Tensor& x) { return 2 * x; }, batch);
    seen.push_back(values(doubled));
  }
  EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6)));
}

TEST_F(CentralStorage, ReplicasShareALookupTable) {
  const auto scope = strategy.scope();
  const lookup::StaticHashTable table(
      lookup::KeyValueTensorInitializer(constant({5, 7}).to(int64), constant({50, 70}).to(int64)),
      int64_t{-1});
  const auto found = strategy.run([&](ReplicaContext& context) {
    return table.lookup(constant({5 + 2 * context.replica_id_in_sync_group()}).to(int64)).tensor();
  });
  EXPECT_THAT(values(found), ElementsAre(50, 70));
}

// A checkpoint has one value for a variable, whatever the strategy.
TEST_F(CentralStorage, CheckpointsAreOthersCheckpoints) {
  internal::SimulatedFileSystem files;
  const auto save = [&](const Variable& v) {
    const train::Checkpoint checkpoint({{"v", v}});
    internal::use_file_system(checkpoint, files);
    return checkpoint.save("dir/ckpt");
  };
  const auto restore = [&](const Variable& v, const std::string& path) {
    const train::Checkpoint checkpoint({{"v", v}});
    internal::use_file_system(checkpoint, files);
    checkpoint.restore(path).assert_consumed();
  };
  const Variable central = make(8);
  const MirroredStrategy mirrored_strategy({"CPU:0", "CPU:1"});
  auto scope = mirrored_strategy.scope();
  const Variable mirrored_variable(number(3), {.name = "v"});
  scope.close();
  restore(mirrored_variable, save(central));
  EXPECT_THAT(components(mirrored_variable), ElementsAre(8, 8));
  mirrored_variable.assign(5);
  restore(central, save(mirrored_variable));
  EXPECT_THAT(components(central), ElementsAre(5));
}

}  // namespace
}  // namespace cohort::distribute
