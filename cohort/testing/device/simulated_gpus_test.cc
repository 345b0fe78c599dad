#include "cohort/testing/device/simulated_gpus.h"

#include <ATen/Context.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/add.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"

namespace cohort::testing {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class SimulatedGpusTest : public ::testing::Test {
 protected:
  const SimulatedGpus gpus_{2};
  const c10::Device gpu_ = internal::torch_device("GPU:0");
  const c10::Device other_ = internal::torch_device("GPU:1");
};

TEST_F(SimulatedGpusTest, AreTheGpusOfTheMachine) {
  EXPECT_EQ(config::list_physical_devices("GPU").size(), 2);
  EXPECT_EQ(gpu_.index(), 0);
  EXPECT_EQ(other_.index(), 1);
  EXPECT_THROW(internal::torch_device("GPU:2"), InvalidArgumentError);
  EXPECT_EQ(at::zeros({2}, other_).device(), other_);
}

TEST(SimulatedGpus, EndWithTheirObject) {
  { const SimulatedGpus gpus(1); }
  EXPECT_EQ(config::list_physical_devices("GPU").size(), 0);
  EXPECT_THROW(SimulatedGpus(0), InvalidArgumentError);
  EXPECT_THROW(SimulatedGpus(SimulatedGpus::kMost + 1), InvalidArgumentError);
}

TEST_F(SimulatedGpusTest, KeepWhatIsCopiedThereAndBack) {
  const Tensor values = at::rand({3, 4});
  EXPECT_TRUE(at::equal(values.to(gpu_).to(other_).to(at::kCPU), values));
  EXPECT_TRUE(at::equal(values.to(gpu_).t().contiguous().cpu(), values.t()));
}

TEST_F(SimulatedGpusTest, CountCopiesAndWaits) {
  const Tensor values = at::rand({3});
  DeviceCounts before = device_counts();
  const Tensor there = values.to(gpu_);
  const Tensor next = there.to(other_);
  const Tensor sum = next.sum();
  DeviceCounts made = device_counts() - before;
  EXPECT_EQ(made.to_device, 1);
  EXPECT_EQ(made.between_devices, 1);
  EXPECT_EQ(made.to_host, 0);
  EXPECT_EQ(made.host_waits, 1);  // the blocking copy to the device
  before = device_counts();
  EXPECT_NEAR(sum.item<float>(), values.sum().item<float>(), 1e-6);
  made = device_counts() - before;
  EXPECT_EQ(made.to_host, 1);
  EXPECT_EQ(made.host_waits, 1);
}

TEST_F(SimulatedGpusTest, RunOperationsInPlaceOnViews) {
  const Tensor host = at::arange(12.).reshape({3, 4});
  const Tensor there = host.to(gpu_);
  there.select(1, 2).add_(1).mul_(2);
  there.narrow(0, 1, 2).zero_();
  Tensor expected = host.clone();
  expected.select(1, 2).add_(1).mul_(2);
  expected.narrow(0, 1, 2).zero_();
  EXPECT_TRUE(at::equal(there.cpu(), expected));
}

TEST_F(SimulatedGpusTest, GiveResultsTheSizeThatTheyNeed) {
  Tensor out = at::empty({0}, gpu_);
  at::arange_out(out, 5);
  EXPECT_TRUE(at::equal(out.cpu(), at::arange(5.)));
  Tensor sum = at::empty({0}, gpu_);
  at::add_out(sum, out, out);
  EXPECT_TRUE(at::equal(sum.cpu(), at::arange(5.) * 2));
  EXPECT_EQ(out.nonzero().size(0), 4);
}

TEST_F(SimulatedGpusTest, TakeListsOfTensors) {
  const std::vector<Tensor> values = {at::ones({2}, gpu_), at::ones({3}, gpu_)};
  at::_foreach_add_(values, 1.0);
  at::_foreach_mul_(values, values);
  EXPECT_TRUE(at::equal(values[1].cpu(), at::full({3}, 4.)));
  EXPECT_TRUE(at::equal(at::cat(values).cpu(), at::full({5}, 4.)));
  const Tensor picked = at::index(values[1], {at::tensor({2, 0}, at::kLong).to(gpu_)});
  EXPECT_EQ(picked.device(), gpu_);
}

TEST_F(SimulatedGpusTest, RefuseOperandsOfTwoDevices) {
  const Tensor there = at::ones({3}, gpu_);
  const auto refused = [](const auto& operation) {
    EXPECT_THAT(operation, ThrowsMessage<std::exception>(HasSubstr("on the same device")));
  };
  refused([&] { there + at::ones({3}); });
  refused([&] { at::ones({3}) * there; });
  refused([&] { there + at::ones({3}, other_); });
  refused([&] { at::cat({there, at::ones({3})}); });
  refused([&] { at::conv1d(there.view({1, 1, 3}), at::ones({1, 1, 2})); });
  EXPECT_TRUE(at::equal((there + at::scalar_tensor(2.)).cpu(), at::full({3}, 3.)));
}

TEST_F(SimulatedGpusTest, RefuseGeneratorsOfTheHost) {
  EXPECT_ANY_THROW(at::empty({3}, gpu_).uniform_(0, 1, at::globalContext().defaultGenerator(at::kCPU)));
  const double mean = at::rand({1000}, gpu_).mean().item<double>();
  EXPECT_NEAR(mean, 0.5, 0.1);
}

TEST_F(SimulatedGpusTest, StartMemoryAsNan) {
  EXPECT_TRUE(at::empty({3}, gpu_).isnan().all().item<bool>());
}

TEST_F(SimulatedGpusTest, DeriveAsTheHostDoes) {
  const auto train = [](c10::Device device) {
    at::manual_seed(1);
    const Tensor images = at::rand({4, 3, 8, 8}).to(device);
    const Tensor kernel = at::rand({5, 3, 3, 3}).to(device).requires_grad_();
    const Tensor weights = at::rand({10, 45}).to(device).requires_grad_();
    const Tensor labels = at::randint(10, {4}, at::kLong).to(device);
    const Tensor features = at::max_pool2d(at::conv2d(images, kernel).relu(), 2).flatten(1);
    const Tensor loss = at::cross_entropy_loss(features.matmul(weights.t()), labels);
    loss.backward();
    return std::vector<Tensor>{loss.detach().cpu(), kernel.grad().cpu(), weights.grad().cpu()};
  };
  const auto here = train(at::kCPU), there = train(gpu_), on_other = train(other_);
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(at::allclose(here[i], there[i])) << i;
    EXPECT_TRUE(at::equal(there[i], on_other[i])) << i;
  }
}

TEST_F(SimulatedGpusTest, EndAProgramThatReadsTheirMemory) {
  const Tensor there = at::ones({3}, gpu_);
  EXPECT_DEATH({ std::_Exit(static_cast<int>(*there.data_ptr<float>())); }, "");
}

}  // namespace
}  // namespace cohort::testing
