// Memory of simulated GPUs, and what happens where there is not enough.
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/structure/device_settings.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kMegabyte = 1'000'000;

int64_t in_use(int gpu) { return config::get_memory_info(internal::str("GPU:", gpu)).current; }

// On GPUs that no other test uses: a thread of an earlier one may still give memory back.
TEST(GpuMemory, IsCountedNowAndAtItsPeak) {
  const testing::SimulatedGpus gpus(8);
  const c10::Device gpu = internal::torch_device("GPU:7");
  config::reset_memory_stats("GPU:7");
  const int64_t before = in_use(7), other = in_use(6);
  {
    const Tensor big = at::ones({kMegabyte}, gpu);
    EXPECT_EQ(in_use(7) - before, 4 * kMegabyte);
  }
  EXPECT_EQ(in_use(7), before);
  EXPECT_EQ(in_use(6), other);
  EXPECT_GE(config::get_memory_info("GPU:7").peak, before + 4 * kMegabyte);
  config::reset_memory_stats("GPU:7");
  EXPECT_EQ(config::get_memory_info("GPU:7").peak, before);
}

class GpuMemoryLimit : public ::testing::Test {
 protected:
  void fit(int64_t batch) const {
    model_.fit(at::ones({batch, 8}), at::ones({batch, 1}),
               {.batch_size = batch, .verbose = 0, .shuffle = false});
  }

  static Sequential make_model(const distribute::Scope&) {
    const Sequential model({layers::Dense(500, {.activation = "relu"}), layers::Dense(1)});
    model.compile({.optimizer = "adam", .loss = "mse"});
    return model;
  }

  const testing::SimulatedGpus gpus_{2};
  const distribute::MirroredStrategy strategy_;
  const Sequential model_ = make_model(strategy_.scope());
};

TEST_F(GpuMemoryLimit, AStepThatDoesNotFitLeavesTheStrategyUsable) {
  fit(16);
  const std::vector<Tensor> weights = values_of(model_.weights());
  {
    const testing::MemoryLimit limit(std::max(in_use(0), in_use(1)) + 2 * kMegabyte);
    EXPECT_THAT([&] { fit(4'000); },
                ThrowsMessage<ResourceExhaustedError>(
                    AllOf(HasSubstr("Tried to allocate "), HasSubstr(" has a total capacity of "),
                          HasSubstr("bytes is free"), HasSubstr("gradient_accumulation_steps"))));
    expect_close({weights, values_of(model_.weights())}, 0);  // of no half step
    fit(16);
  }
  fit(4'000);
  for (const Tensor& weight : values_of(model_.weights())) {
    EXPECT_TRUE(weight.isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace cohort::keras
