// Graphs of simulated devices do again what was recorded, and nothing else.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/recording/device_graphs.h"
#include "cohort/core/recording/operation_trace.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/device.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::testing {
namespace {

using at::Tensor;
using internal::DeviceGraph;
using internal::HostPart;
using internal::OperationTrace;
using internal::StepRecording;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Tensor gradient_of_square(const Tensor& x) {
  const at::AutoGradMode with_gradient(true);
  return torch::autograd::grad({x.square().sum()}, {x})[0];
}

class DeviceRecordingTest : public ::testing::Test {
 protected:
  Tensor on_gpu(const Tensor& host) const { return host.to(device_); }
  std::unique_ptr<DeviceGraph> graph() const { return internal::make_device_graph(device_); }

  const SimulatedGpus gpus_{1};
  const c10::Device device_ = internal::torch_device("GPU:0");
};

TEST_F(DeviceRecordingTest, NothingHappensBeforeTheReplay) {
  const Tensor total = on_gpu(at::zeros({2})), x = on_gpu(at::ones({2}));
  const auto recorded = graph();
  Tensor twice;
  recorded->record([&] {
    total.add_(x);
    twice = total * 2;
  });
  EXPECT_TRUE(at::equal(total.cpu(), at::zeros({2})));
  EXPECT_TRUE(twice.cpu().isnan().all().item<bool>());
  const DeviceCounts before = device_counts();
  recorded->replay();
  x.fill_(10);
  recorded->replay();
  EXPECT_EQ((device_counts() - before).kernels, 3);  // and x
  EXPECT_EQ((device_counts() - before).replays, 2);
  EXPECT_TRUE(at::equal(total.cpu(), at::full({2}, 11.f)));
  EXPECT_TRUE(at::equal(twice.cpu(), at::full({2}, 22.f)));
}

TEST_F(DeviceRecordingTest, OperationsOfEveryKindAreDoneAgain) {
  const Tensor x = on_gpu(at::ones({1, 1, 2, 2})), weight = on_gpu(at::ones({1, 1, 1, 1}));
  const auto work = [&] {
    const Tensor y = at::convolution(x, weight, {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1);
    Tensor written = at::zeros({0}, y.options());
    at::stack_out(written, {y, y + 1});
    const auto parts = written.flatten().chunk(2);
    Tensor sum = parts[0] + parts[1];
    sum[0] = 7;
    sum.select(0, 1).copy_(x.select(0, 0).sum());
    return sum;
  };
  const auto recorded = graph();
  Tensor result;
  recorded->record([&] { result = work(); });
  x.fill_(3);
  recorded->replay();
  EXPECT_TRUE(at::equal(result.cpu(), work().cpu())) << result.cpu();
}

TEST_F(DeviceRecordingTest, NumbersAndTensorsOfTheHostAreThoseOfTheRecording) {
  float number = 1;
  const Tensor host = at::ones({2}), total = on_gpu(at::zeros({2}));
  const auto recorded = graph();
  recorded->record([&] { total.add_(host.to(device_, /*non_blocking=*/true), number); });
  number = 5;
  host.fill_(5);
  recorded->replay();
  EXPECT_TRUE(at::equal(total.cpu(), at::ones({2})));
}

TEST_F(DeviceRecordingTest, WhatTheHostWouldWaitForIsRefused) {
  const Tensor x = on_gpu(at::ones({2}));
  const auto refuses = [&](const std::function<void()>& work) {
    EXPECT_THAT([&] { graph()->record(work); },
                ThrowsMessage<c10::Error>(HasSubstr("the host would wait for the device")));
  };
  refuses([&] { x.sum().item<float>(); });
  refuses([&] { x.cpu(); });
  refuses([&] { at::ones({2}).to(device_); });
  refuses([&] { x.nonzero(); });
  EXPECT_EQ(x.sum().item<float>(), 2);
}

TEST_F(DeviceRecordingTest, MemoryThatIsGoneIsFound) {
  std::optional<Tensor> x = on_gpu(at::ones({2}));
  const auto recorded = graph();
  Tensor y;
  recorded->record([&] {
    const Tensor between = *x * 2;
    y = between + 1;
  });
  recorded->replay();
  EXPECT_TRUE(at::equal(y.cpu(), at::full({2}, 3.f)));
  x.reset();
  EXPECT_THAT([&] { recorded->replay(); }, ThrowsMessage<c10::Error>(HasSubstr("was freed since")));
}

// What two rehearsals of `work` say.
struct Rehearsed {
  std::string obstacle;
  std::string difference;
};
Rehearsed rehearse(c10::Device device, const std::function<void()>& work) {
  OperationTrace first(device);
  work();
  first.stop();
  OperationTrace second(device);
  work();
  second.stop();
  return {first.obstacle(), OperationTrace::difference(first, second)};
}

// A recording is of its thread alone, with those of its backward passes, as CUDA's are.
TEST_F(DeviceRecordingTest, ThreadsRecordAtOnce) {
  constexpr int kThreads = 4;
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        const float start = static_cast<float>(t + round);
        const Tensor weight = on_gpu(at::full({3}, start)).requires_grad_(true);
        const Tensor gradient = on_gpu(at::zeros({3}));
        const auto graph = this->graph();
        graph->record([&] { gradient.copy_(gradient_of_square(weight)); });
        if (!at::equal(gradient.cpu(), at::zeros({3}))) errors[t] = "something happened at once";
        graph->replay();
        graph->replay();
        if (!at::equal(gradient.cpu(), at::full({3}, 2 * start))) errors[t] = "a wrong gradient";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_THAT(error, IsEmpty());
}

TEST_F(DeviceRecordingTest, TracesTellWhatChangesOnTheHost) {
  const Tensor x = on_gpu(at::ones({2}));
  double number = 0;
  EXPECT_THAT(rehearse(device_, [&] { x + 1; }).difference, IsEmpty());
  EXPECT_THAT(rehearse(device_, [&] { x + ++number; }).difference, HasSubstr("aten::add"));
  EXPECT_THAT(rehearse(device_, [&] { at::full({2}, ++number, x.options()); }).difference,
              HasSubstr("aten::full"));
  EXPECT_THAT(rehearse(device_, [&] { x* at::full({}, ++number); }).difference,
              HasSubstr("aten::mul"));
  EXPECT_THAT(rehearse(device_, [&] { at::full({2}, ++number) + 1; }).difference, IsEmpty());
}

TEST_F(DeviceRecordingTest, TracesTellWhatTheHostWaitsFor) {
  const Tensor x = on_gpu(at::ones({2}));
  const auto obstacle = [&](const std::function<void()>& work) {
    return rehearse(device_, work).obstacle;
  };
  EXPECT_THAT(obstacle([&] { x + 1; }), IsEmpty());
  EXPECT_THAT(obstacle([&] { x.sum().item<float>(); }), HasSubstr("reads a number"));
  EXPECT_THAT(obstacle([&] { x.cpu(); }), HasSubstr("copies a tensor of shape [2] to the host"));
  EXPECT_THAT(obstacle([&] { at::ones({3}).to(device_, true); }),
              HasSubstr("copies a tensor of shape [3] from the host"));
  EXPECT_THAT(obstacle([&] { x.nonzero(); }), HasSubstr("aten::nonzero"));
}

TEST_F(DeviceRecordingTest, TheHostsPartRunsInOrderBeforeEachReplay) {
  int64_t steps = 0;
  const auto step = [&] {
    StepRecording& recording = *StepRecording::current();
    const Tensor before = recording.host_values(
        {2}, at::kFloat, [&](const Tensor& host) { host.fill_(static_cast<double>(steps)); });
    recording.each_time([&] { ++steps; });
    const Tensor after =
        recording.host_values({}, at::kLong, [&](const Tensor& host) { host.fill_(steps); });
    return before.sum() * 100 + after;
  };
  std::vector<HostPart::Values> values;
  OperationTrace trace(device_);
  {
    StepRecording rehearsal(device_, trace);
    EXPECT_EQ(step().item<float>(), 1);
    values = rehearsal.values();
  }
  HostPart part(device_, values);
  const auto recorded = graph();
  Tensor result;
  {
    StepRecording recording(device_, trace, part);
    recorded->record([&] { result = step(); });
  }
  EXPECT_EQ(steps, 1);
  for (int64_t i = 1; i < 4; ++i) {
    part.run();
    recorded->replay();
    EXPECT_EQ(steps, i + 1);
    EXPECT_EQ(result.item<float>(), static_cast<float>(2 * i * 100 + i + 1));
  }
}

}  // namespace
}  // namespace cohort::testing
