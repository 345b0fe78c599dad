#include "cohort/testing/device/device_order.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>

#include <string>

#include "cohort/core/structure/device.h"
#include "cohort/core/structure/device_stream.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::testing {
namespace {

using at::Tensor;
using internal::current_stream;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class DeviceOrder : public ::testing::Test {
 protected:
  // Ones that the stream of copies is still writing.
  Tensor written_beside() {
    const c10::StreamGuard guard(internal::copy_stream(gpu_));
    Tensor made = at::ones({3}, gpu_);
    event_.record(internal::copy_stream(gpu_));
    return made;
  }

  const SimulatedGpus gpus_{2};
  const c10::Device gpu_ = internal::torch_device("GPU:0");
  c10::Event event_{kSimulated};
};

template <class Operation>
void expect_refused(Operation operation, const std::string& why) {
  EXPECT_THAT(operation, ThrowsMessage<c10::Error>(HasSubstr(why)));
}

TEST_F(DeviceOrder, AStreamReadsWhatItHasWritten) {
  const c10::StreamGuard guard(internal::copy_stream(gpu_));
  EXPECT_EQ(at::ones({3}, gpu_).sum().item<float>(), 3);
}

TEST_F(DeviceOrder, AnotherStreamNeedsAnEvent) {
  const Tensor value = written_beside();
  expect_refused([&] { value + 1; }, "reads memory that stream");
  event_.block(current_stream(gpu_));
  EXPECT_EQ((value + 1).sum().item<float>(), 6);
}

TEST_F(DeviceOrder, AnEventOfBeforeOrdersNothing) {
  event_.record(internal::copy_stream(gpu_));
  c10::Event early = std::move(event_);
  event_ = c10::Event(kSimulated);
  const Tensor value = written_beside();
  early.block(current_stream(gpu_));
  expect_refused([&] { value.cpu(); }, "no event orders the two");
}

TEST_F(DeviceOrder, WhatAnotherStreamReadsIsNotWritten) {
  const Tensor value = at::zeros({3}, gpu_), other = at::zeros({3}, gpu_);
  event_.record(current_stream(gpu_));
  {
    const c10::StreamGuard guard(internal::copy_stream(gpu_));
    event_.block(internal::copy_stream(gpu_));
    value.sum();
    other.sum();
  }
  expect_refused([&] { value.add_(1); }, "writes memory that stream");
  expect_refused([&] { at::_foreach_add_({other}, 1.0); }, "writes memory that stream");
  event_.record(internal::copy_stream(gpu_));
  EXPECT_TRUE(event_.query());  // so that it may be released
  EXPECT_EQ(value.add_(1).sum().item<float>(), 3);
}

TEST_F(DeviceOrder, AWaitOfTheHostOrdersWhatFollows) {
  const Tensor value = written_beside();
  EXPECT_TRUE(event_.query());
  EXPECT_EQ(value.sum().item<float>(), 3);
}

TEST_F(DeviceOrder, CopiesBetweenDevicesOrderTheirStreams) {
  const Tensor there = at::ones({3}, gpu_).to(internal::torch_device("GPU:1"));
  EXPECT_EQ(there.add_(1).to(gpu_).add_(1).sum().item<float>(), 9);
}

TEST_F(DeviceOrder, MemoryOfAnotherStreamMustBeKept) {
  {
    const Tensor value = written_beside();
    event_.block(current_stream(gpu_));
    value.sum();
  }
  expect_refused([&] { at::ones({3}, gpu_); }, "was released while stream 0 of device 0");
  {
    const Tensor value = written_beside();
    event_.block(current_stream(gpu_));
    value.sum();
    internal::keep_until_done(value, current_stream(gpu_));
  }
  EXPECT_EQ(at::ones({3}, gpu_).sum().item<float>(), 3);
}

}  // namespace
}  // namespace cohort::testing
