// How variables of each kind, generators and inputs of a strategy go through checkpoints.
#include "cohort/train/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/data/testing_device.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using internal::SimulatedFileSystem;
using testing::Each;
using testing::HasSubstr;
using train::Checkpoint;
using train::NamedObject;

struct VariableCheckpoint : testing::Test {
  Checkpoint make(std::vector<NamedObject> objects) {
    Checkpoint checkpoint(std::move(objects));
    internal::use_file_system(checkpoint, files);
    return checkpoint;
  }
  void save(const Variable& variable) { make({{"v", variable}}).write("dir/ckpt"); }
  void restore(const Variable& variable) {
    make({{"v", variable}}).read("dir/ckpt").assert_consumed();
  }

  SimulatedFileSystem files;
};

Variable make_variable(const Strategy& strategy, const Tensor& initial, VariableOptions options) {
  auto scope = strategy.scope();
  return Variable(initial, std::move(options));
}

Variable on_read(const Strategy& strategy, VariableAggregation aggregation,
                 const Tensor& initial = at::zeros({2})) {
  return make_variable(strategy, initial,
                       {.name = "v",
                        .synchronization = VariableSynchronization::ON_READ,
                        .aggregation = aggregation});
}

// Writes 1, 2, ... into the replicas' components.
void number_components(const Strategy& strategy, const Variable& variable) {
  strategy.run(
      [&](ReplicaContext& replica) { variable.assign(replica.replica_id_in_sync_group() + 1.0); });
}

std::vector<double> component_values(const Variable& variable) {
  std::vector<double> values;
  const PerReplica<Tensor> components = variable.components();
  for (const Tensor& component : components.values()) {
    values.push_back(component.flatten()[0].item<double>());
  }
  return values;
}

TEST_F(VariableCheckpoint, AMirroredOneIsOneValueForAnyNumberOfReplicas) {
  for (const bool shared : {true, false}) {
    const auto four = mirrored(4, {.shared_storage = shared});
    save(make_variable(four, at::arange(3, float32), {.name = "v"}));
    for (const int replicas : {1, 2, 5}) {
      const auto strategy = mirrored(replicas, {.shared_storage = shared});
      const Variable variable = make_variable(strategy, at::zeros({3}), {.name = "v"});
      restore(variable);
      const PerReplica<Tensor> components = variable.components();
      EXPECT_EQ(components.size(), static_cast<size_t>(replicas));
      for (const Tensor& component : components.values()) {
        EXPECT_TRUE(component.equal(at::arange(3, float32)));
      }
    }
    const Variable plain(at::zeros({3}));
    restore(plain);
    EXPECT_TRUE(plain.value().equal(at::arange(3, float32)));
  }
}

TEST_F(VariableCheckpoint, APlainOneIsRestoredUnderAStrategy) {
  save(Variable(Tensor(at::full({2}, 6.0f))));
  const auto strategy = mirrored(3);
  const Variable mirrored_one = make_variable(strategy, at::zeros({2}), {.name = "v"});
  restore(mirrored_one);
  EXPECT_THAT(component_values(mirrored_one), Each(6));
  const Variable sum = on_read(strategy, VariableAggregation::SUM);
  restore(sum);
  EXPECT_THAT(component_values(sum), Each(2));
  const Variable mean = on_read(strategy, VariableAggregation::MEAN);
  restore(mean);
  EXPECT_THAT(component_values(mean), Each(6));
  const OneDeviceStrategy one("CPU:0");
  const Variable single = make_variable(one, at::zeros({2}), {.name = "v"});
  restore(single);
  EXPECT_THAT(component_values(single), Each(6));
}

TEST_F(VariableCheckpoint, AnOnReadOneSavesItsAggregate) {
  const auto strategy = mirrored(4);
  const struct {
    VariableAggregation aggregation;
    double saved;
    double restored;
  } kCases[] = {{VariableAggregation::SUM, 10, 5},
                {VariableAggregation::MEAN, 2.5, 2.5},
                {VariableAggregation::ONLY_FIRST_REPLICA, 1, 1}};
  for (const auto& expected : kCases) {
    const Variable variable = on_read(strategy, expected.aggregation);
    number_components(strategy, variable);
    save(variable);
    const Variable plain(at::zeros({2}));
    restore(plain);
    EXPECT_EQ(plain.value()[0].item<double>(), expected.saved);
    const Variable other = on_read(mirrored(2), expected.aggregation);
    restore(other);
    EXPECT_THAT(component_values(other), Each(expected.restored));
  }
}

TEST_F(VariableCheckpoint, AsManyReplicasGetTheirComponentsBackBitForBit) {
  const auto strategy = mirrored(3);
  for (const auto aggregation : {VariableAggregation::SUM, VariableAggregation::MEAN,
                                 VariableAggregation::ONLY_FIRST_REPLICA}) {
    const Variable variable = on_read(strategy, aggregation, at::zeros({2}));
    strategy.run([&](ReplicaContext& replica) {
      variable.assign(0.1 * (replica.replica_id_in_sync_group() + 1));
    });
    const std::vector<double> before = component_values(variable);
    save(variable);
    number_components(strategy, variable);
    restore(variable);
    EXPECT_EQ(component_values(variable), before);
  }
}

TEST_F(VariableCheckpoint, SumsOfIntegersStayWhatTheyAre) {
  const auto strategy = mirrored(4);
  save(Variable(Tensor(at::full({}, 7, int64))));
  const Variable counter = on_read(strategy, VariableAggregation::SUM, at::zeros({}, int64));
  restore(counter);
  EXPECT_EQ(counter.value().item<int64_t>(), 7);
}

TEST_F(VariableCheckpoint, AMeanOfIntegersIsRoundedAndItsComponentsAreNot) {
  const auto make = [](int replicas) {
    return on_read(mirrored(replicas), VariableAggregation::MEAN, at::zeros({2}, int64));
  };
  const auto strategy = mirrored(2);
  const Variable variable = on_read(strategy, VariableAggregation::MEAN, at::zeros({2}, int64));
  strategy.run([&](ReplicaContext& replica) {
    variable.assign(at::full({2}, 1 + 5 * replica.replica_id_in_sync_group(), int64));
  });
  save(variable);
  const Variable same = make(2);
  restore(same);
  EXPECT_THAT(component_values(same), ::testing::ElementsAre(1, 6));
  const Variable other = make(3);
  restore(other);
  EXPECT_THAT(component_values(other), Each(4));  // 3.5
}

TEST_F(VariableCheckpoint, WithoutAnAggregationItCannotBeSaved) {
  const auto strategy = mirrored(2);
  const Variable variable = on_read(strategy, VariableAggregation::NONE);
  EXPECT_THROW(save(variable), InvalidArgumentError);
}

TEST_F(VariableCheckpoint, NotInAStep) {
  const auto strategy = mirrored(2);
  const Variable variable = make_variable(strategy, at::zeros({2}), {.name = "v"});
  save(variable);
  EXPECT_THROW(strategy.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) save(variable);
  }),
               FailedPreconditionError);
  EXPECT_THROW(strategy.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) restore(variable);
  }),
               FailedPreconditionError);
}

TEST_F(VariableCheckpoint, AnotherShapeOrDtypeIsRefusedByName) {
  save(Variable(at::zeros({2, 3}), {.name = "kernel"}));
  const Variable other(at::zeros({3, 2}));
  try {
    restore(other);
    FAIL() << "restored";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("v: the checkpoint has float32 [2,3], the program "
                                        "float32 [3,2]"));
  }
  EXPECT_THROW(restore(Variable(at::zeros({2, 3}, float64))), InvalidArgumentError);
}

TEST_F(VariableCheckpoint, TapesDoNotTakeRestoredValuesForOlderOnes) {
  const Variable variable(at::zeros({2}));
  save(variable);
  const auto version = variable.value()._version();
  restore(variable);
  EXPECT_GT(variable.value()._version(), version);
}

TEST_F(VariableCheckpoint, ReplicasGoOnDrawingWhereTheyWere) {
  const auto draw = [](const Strategy& strategy) {
    std::vector<double> drawn;
    const auto values = strategy.run([] { return random::uniform({}); });
    for (const Tensor& value : values.values()) {
      drawn.push_back(value.item<double>());
    }
    return drawn;
  };
  std::vector<double> expected;
  {
    const auto strategy = mirrored(3);
    draw(strategy);
    make({{"random", strategy}}).write("dir/ckpt");
    expected = draw(strategy);
  }
  const auto strategy = mirrored(3);
  make({{"random", strategy}}).read("dir/ckpt").assert_consumed();
  EXPECT_EQ(draw(strategy), expected);

  random::set_seed(5);  // before the restore: what is restored counts
  const auto two = mirrored(2);
  make({{"random", two}}).read("dir/ckpt").assert_existing_objects_matched();
  expected.pop_back();
  EXPECT_EQ(draw(two), expected);
}

TEST_F(VariableCheckpoint, MoreReplicasThanWereSavedMatchAsWell) {
  const auto generator_under = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    return random::RandomGenerator::from_seed(3);
  };
  const auto two = mirrored(2), three = mirrored(3);
  make({{"random", two}, {"gen", generator_under(two)}}).write("dir/ckpt");
  const std::vector<NamedObject> more = {{"random", three}, {"gen", generator_under(three)}};
  make(more).read("dir/ckpt").assert_existing_objects_matched().assert_consumed();
  // Where nothing at all was saved of them, they are missing.
  save(Variable(at::zeros({2})));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { make(more).read("dir/ckpt").assert_existing_objects_matched(); }),
              HasSubstr("random/replica_0"));
}

TEST_F(VariableCheckpoint, TheGlobalGeneratorIsOneObjectWhateverItsSeed) {
  const Checkpoint checkpoint = make({{"random", random::get_global_generator()}});
  random::set_seed(6);
  checkpoint.write("dir/ckpt");
  const double expected = random::uniform({}).item<double>();
  random::set_seed(7);
  checkpoint.read("dir/ckpt").assert_consumed();
  EXPECT_EQ(random::uniform({}).item<double>(), expected);
}

TEST_F(VariableCheckpoint, DistributedInputGoesOnWhereItWas) {
  const auto strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::range(50).shuffle(7, {.seed = 3}).batch(4));
  auto iterator = dataset.iterator();
  for (int i = 0; i < 5; ++i) iterator.next();
  make({{"input", iterator}}).write("dir/ckpt");
  const auto expected = iterator.get_next();

  auto resumed = dataset.iterator();
  make({{"input", resumed}}).read("dir/ckpt").assert_consumed();
  EXPECT_EQ(text(resumed.get_next()), text(expected));
  EXPECT_THAT(resumed.positions(), ::testing::ElementsAre(0, 1));  // counted from the restore
}

// Also within a step, after a read deadline that was missed.
TEST_F(VariableCheckpoint, InputOfSeveralWorkersGoesOnWhereItWas) {
  const auto strategy = mirrored(2);
  std::atomic<int> timeouts = 0;
  const auto dataset = get_distributed_datasets_from_function(
      [&](const InputContext& context) {
        const int64_t slow = context.input_pipeline_id == 1 ? 2 : -1;
        return data::slow_device(5, slow, &timeouts).batch(1);
      },
      cpu_workers(2, 1), contexts(2), strategy);
  auto iterator = dataset.iterator();
  EXPECT_EQ(text(iterator.get_next()), "[0][0]");
  make({{"input", iterator}}).write("dir/between");
  iterator.get_next();
  timeouts = 1;
  EXPECT_THROW(iterator.get_next(), DeadlineExceededError);
  make({{"input", iterator}}).write("dir/within");

  auto resumed = dataset.iterator();
  make({{"input", resumed}}).read("dir/within").assert_consumed();
  EXPECT_EQ(text(resumed.get_next()), "[2][2]");
  timeouts = 1;
  resumed.restore(iterator.state());
  make({{"input", resumed}}).read("dir/between").assert_consumed();
  timeouts = 0;
  EXPECT_EQ(text(resumed.get_next()), "[1][1]");
  EXPECT_EQ(text(resumed.get_next()), "[2][2]");
}

// Distributed input of so many workers, each of which reads range(5).
DistributedIterator of_workers(int workers, const Strategy& strategy) {
  return get_distributed_datasets_from_function(
             [](const InputContext&) { return data::Dataset::range(5).batch(1); },
             cpu_workers(workers, 4 / workers), contexts(workers), strategy)
      .iterator();
}

TEST_F(VariableCheckpoint, InputOfAnotherNumberOfWorkersIsRefusedWithBothNumbers) {
  const auto strategy = mirrored(4);
  const auto name_of = [](int workers) {
    return workers == 1 ? std::string("one undivided dataset")
                        : internal::str(workers, " pipelines");
  };
  for (const int saved : {1, 2, 4}) {
    auto iterator = of_workers(saved, strategy);
    iterator.get_next();
    make({{"input", iterator}}).write("dir/ckpt");
    for (const int here : {1, 2, 4}) {
      auto other = of_workers(here, strategy);
      const std::string first = text(of_workers(here, strategy).get_next());
      const Checkpoint checkpoint = make({{"input", other}});
      if (here == saved) {
        checkpoint.read("dir/ckpt").assert_consumed();
        EXPECT_EQ(text(other.get_next()), text(iterator.get_next()));
        continue;
      }
      EXPECT_THAT(refused([&] { checkpoint.read("dir/ckpt"); }),
                  HasSubstr("position of " + name_of(saved) + "; here it is read by " +
                            name_of(here) + ", as the dataset function divides it"));
      EXPECT_EQ(text(other.get_next()), first);  // nothing has changed
    }
  }
}

// Several workers' positions were children before they were values of one object.
struct WorkersOfOld final : train::Trackable {
  std::vector<train::TrackableChild> checkpoint_children() override {
    return {{"worker_0", first.get().get()}, {"worker_1", second.get().get()}};
  }
  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    data::IteratorState begun;
    begun.set_bytes("came", std::string());
    begun.set_int("workers", 2);
    return {{.attribute = train::kIteratorState,
             .parts = {{Leaf(StringTensor::scalar(begun.serialize()))}}}};
  }

  data::DatasetIterator iterator = data::Dataset::range(5).batch(1).iterator();
  train::TrackableHandle first{iterator}, second{iterator};
};

TEST_F(VariableCheckpoint, InputOfWorkersOfAnEarlierVersionIsRefused) {
  const auto old = std::make_shared<WorkersOfOld>();
  make({{"input", old}}).write("dir/ckpt");
  const auto strategy = mirrored(4);
  for (const int workers : {1, 2}) {
    auto input = of_workers(workers, strategy);
    EXPECT_THAT(refused([&] {
                  make({{"input", input}}).read("dir/ckpt");
                }),
                HasSubstr("an earlier version"));
  }
}

}  // namespace
}  // namespace cohort::distribute
