// Batches of simulated GPUs.
#include "cohort/distribute/input/device_copies.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/structure/device.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using internal_input::DeviceCopies;
using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class DeviceCopiesTest : public ::testing::Test {
 protected:
  const testing::SimulatedGpus gpus_{2};
  const c10::Device gpu_ = internal::torch_device("GPU:0");
};

Dataset numbers(int64_t count, int64_t batch) {
  return Dataset::from_tensor_slices(tuple(at::arange(count), at::ones({count, 2}))).batch(batch);
}

std::vector<int64_t> host_numbers(const Tensor& tensor) {
  const Tensor host = tensor.cpu();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

// Waits until the devices have got so many tensors of the host since `before`.
void wait_for_copies(const DeviceCounts& before, int64_t count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((device_counts() - before).to_device < count) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST_F(DeviceCopiesTest, ABatchIsOrderedAfterItsCopy) {
  DeviceCopies copies({gpu_});
  const Structure batch = copies.start(Structure(at::ones({3})), 0);
  EXPECT_EQ(batch.tensor().device(), gpu_);
  EXPECT_THAT([&] { batch.tensor().sum(); },
              ThrowsMessage<c10::Error>(HasSubstr("no event orders the two")));
  EXPECT_EQ(copies.arrived(batch, 0).tensor().sum().item<float>(), 3);
}

TEST_F(DeviceCopiesTest, WhatWasNotStartedArrivesToo) {
  DeviceCopies copies({gpu_, internal::torch_device("GPU:1")});
  EXPECT_EQ(copies.arrived(Structure(at::ones({3})), 1).tensor().sum().item<float>(), 3);
  const Structure elsewhere = copies.arrived(copies.start(Structure(at::ones({3})), 0), 1);
  EXPECT_EQ(elsewhere.tensor().device(), internal::torch_device("GPU:1"));
  EXPECT_EQ(elsewhere.tensor().sum().item<float>(), 3);
}

TEST_F(DeviceCopiesTest, BatchesAreCopiedAheadOfTheirSteps) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto dataset = strategy.experimental_distribute_dataset(numbers(40, 4));
  auto iterator = dataset.iterator();
  const DeviceCounts before = device_counts();
  std::optional<PerReplica<Structure>> batch = iterator.next();
  wait_for_copies(before, 3 * 2);  // the batch and two more, of two tensors
  const DeviceCounts ahead = device_counts() - before;
  EXPECT_EQ(ahead.host_waits, 0);
  for (int64_t first = 0; batch; first += 4, batch = iterator.next()) {
    EXPECT_THAT(host_numbers(batch->value(0)[0].tensor()),
                ::testing::ElementsAre(first, first + 1, first + 2, first + 3));
  }
  EXPECT_EQ((device_counts() - before).to_device, 10 * 2);
}

TEST_F(DeviceCopiesTest, EachReplicaGetsItsOwn) {
  const MirroredStrategy strategy;
  const auto dataset = strategy.experimental_distribute_dataset(numbers(16, 8));
  const DeviceCounts before = device_counts();
  int64_t first = 0;
  for (const auto& batch : dataset) {
    for (const int replica : {0, 1}) {
      const Tensor own = batch.value(static_cast<size_t>(replica))[0].tensor();
      EXPECT_EQ(own.device().index(), replica);
      EXPECT_EQ(host_numbers(own)[0], first);
      first += 4;
    }
  }
  EXPECT_EQ((device_counts() - before).between_devices, 0);
}

TEST_F(DeviceCopiesTest, DatasetFunctionsBatchesAreCopiedAheadToo) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto dataset = strategy.distribute_datasets_from_function(
      [](const InputContext&) { return numbers(40, 4); });
  auto iterator = dataset.iterator();
  const DeviceCounts before = device_counts();
  const auto batch = iterator.next();
  wait_for_copies(before, 2 * 2);
  EXPECT_EQ(host_numbers(batch->value(0)[0].tensor())[3], 3);
}

TEST_F(DeviceCopiesTest, WithoutABufferNothingIsCopiedAhead) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto dataset = strategy.experimental_distribute_dataset(
      numbers(40, 4), {.experimental_per_replica_buffer_size = 0});
  auto iterator = dataset.iterator();
  const DeviceCounts before = device_counts();
  iterator.next();
  iterator.next();
  EXPECT_EQ((device_counts() - before).to_device, 2 * 2);
}

TEST_F(DeviceCopiesTest, BatchesOfTheHostStayThere) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto dataset = strategy.experimental_distribute_dataset(
      numbers(8, 4), {.experimental_fetch_to_device = false});
  EXPECT_TRUE(dataset.iterator().next()->value(0)[0].tensor().is_cpu());
}

// What was looked at and not taken is part of a state, in the host's memory.
TEST_F(DeviceCopiesTest, AStateHoldsBatchesThatWereCopied) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto dataset = strategy.experimental_distribute_dataset(numbers(16, 4));
  auto iterator = dataset.iterator();
  iterator.next();
  EXPECT_TRUE(iterator.has_next());
  const data::IteratorState state = iterator.state();
  for (auto* const one : {&iterator, &iterator}) {
    EXPECT_EQ(host_numbers(one->next()->value(0)[0].tensor())[0], 4);
    EXPECT_EQ(host_numbers(one->next()->value(0)[0].tensor())[0], 8);
    one->restore(state);
  }
  const OneDeviceStrategy host("CPU:0");
  auto elsewhere = host.experimental_distribute_dataset(numbers(16, 4)).iterator();
  elsewhere.restore(state);
  EXPECT_EQ(host_numbers(elsewhere.next()->value(0)[0].tensor())[0], 4);
}

TEST_F(DeviceCopiesTest, AFailedElementTakesItsTurn) {
  const MirroredStrategy strategy;
  const Dataset failing = Dataset::range(8).map([](const Tensor& number) -> Tensor {
    if (number.item<int64_t>() == 2) throw InvalidArgumentError("number 2");
    return number.view({1});
  });
  const auto dataset =
      strategy.distribute_datasets_from_function([&](const InputContext&) { return failing; });
  auto iterator = dataset.iterator();
  iterator.next();
  EXPECT_THROW(iterator.next(), InvalidArgumentError);
  const DeviceCounts before = device_counts();
  const auto batch = iterator.next();
  EXPECT_EQ(host_numbers(batch->value(0).tensor())[0], 4);
  EXPECT_EQ(batch->value(1).tensor().device().index(), 1);
  EXPECT_EQ((device_counts() - before).between_devices, 0);
}

}  // namespace
}  // namespace cohort::distribute
