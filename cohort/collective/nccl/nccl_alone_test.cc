// One GPU has one rank: on a real GPU over NVIDIA's NCCL, where there is one.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/nccl/testing_gpu_communicator.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/core/error.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/fake_nccl.h"

namespace cohort::collective {
namespace {

constexpr std::chrono::seconds kPatience{30};

c10::Device gpu() {
  if (at::hasCUDA()) return {at::kCUDA, 0};
  if (std::getenv("COHORT_NCCL_LIBRARY") == nullptr) testing::use_fake_nccl();
  return {testing::kSimulated, 0};
}

std::shared_ptr<Communicator> alone() {
  return make_nccl_communicator(std::make_shared<SoleCommunicator>(0), {gpu()}, kPatience);
}

Tensor numbers(int64_t count, DType dtype) { return at::arange(count).to(dtype).to(gpu()); }

TEST(NcclAlone, EveryCallGivesBackWhatItGot) {
  const auto group = alone();
  for (const DType dtype : {float32, float64, int32, int64, at::kHalf, at::kBFloat16}) {
    const Tensor value = numbers(2'000, dtype);
    const Tensor before = value.cpu();
    const Buffer buffer = buffer_on_gpu(value);
    const int64_t counts[] = {value.numel()};
    const auto until = std::chrono::steady_clock::now() + kPatience;
    group->all_reduce({&buffer, 1}, {.name = "sum"})->wait(until);
    group->reduce_scatter({&buffer, 1}, counts, {.name = "rs"})->wait(until);
    group->all_gather({&buffer, 1}, counts, {.name = "ag"})->wait(until);
    group->broadcast({&buffer, 1}, 0, {.name = "bc"})->wait(until);
    EXPECT_TRUE(at::equal(value.cpu(), before)) << internal::dtype_name(dtype);
  }
}

TEST(NcclAlone, ValuesOfTheCpuAreTheHostsAndOtherDtypesAreRefused) {
  const auto group = alone();
  float value = 7;
  all_reduce(*group, {&value, 1, float32}, {.name = "sum"});
  EXPECT_EQ(value, 7);
  const Buffer flags = buffer_on_gpu(numbers(4, at::kBool));
  EXPECT_THROW(group->all_reduce({&flags, 1}, {.name = "flags"}), InvalidArgumentError);
  const Tensor numbers_again = numbers(4, float32);  // and goes on
  const Buffer buffer = buffer_on_gpu(numbers_again);
  group->all_reduce({&buffer, 1}, {.name = "sum"});
}

TEST(NcclAlone, AfterAnAbortEveryCallIsRefused) {
  const auto group = alone();
  group->abort(std::make_exception_ptr(DataLossError("record 7 is damaged")));
  const Tensor value = numbers(4, float32);
  const Buffer buffer = buffer_on_gpu(value);
  EXPECT_THROW(group->all_reduce({&buffer, 1}, {.name = "sum"}), Error);
}

TEST(NcclAlone, NeedsAGpu) {
  EXPECT_THROW(make_nccl_communicator(std::make_shared<SoleCommunicator>(0), {}, kPatience),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::collective
