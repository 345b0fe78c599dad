// One GPU has one rank, since NCCL refuses two on one device. The suite of
// testing_conformance.h asks for more; it passes CPU memory, which is the host communicator's.
#include "cohort/collective/nccl/nccl_communicator.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "cohort/collective/sole_communicator.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {
namespace {

constexpr std::chrono::seconds kPatience{30};

Buffer on_gpu(const Tensor& value) {
  return {value.data_ptr(), value.numel(), value.scalar_type(),
          c10::cuda::getCurrentCUDAStream(0).unwrap()};
}

std::shared_ptr<Communicator> alone() {
  return make_nccl_communicator(std::make_shared<SoleCommunicator>(0), {0}, kPatience);
}

TEST(Nccl, AloneEveryCallGivesBackWhatItGot) {
  const auto group = alone();
  for (const DType dtype : {float32, float64, int32, int64, at::kHalf, at::kBFloat16}) {
    const Tensor value = at::arange(100'000, at::device(at::kCUDA).dtype(dtype));
    const Tensor before = value.clone();
    const Buffer buffer = on_gpu(value);
    const int64_t counts[] = {value.numel()};
    const auto until = std::chrono::steady_clock::now() + kPatience;
    group->all_reduce({&buffer, 1}, {.name = "sum"})->wait(until);
    group->reduce_scatter({&buffer, 1}, counts, {.name = "rs"})->wait(until);
    group->all_gather({&buffer, 1}, counts, {.name = "ag"})->wait(until);
    group->broadcast({&buffer, 1}, 0, {.name = "bc"})->wait(until);
    EXPECT_TRUE(at::equal(value, before)) << internal::dtype_name(dtype);
  }
}

TEST(Nccl, ValuesOfTheCpuAreTheHostsAndOtherDtypesAreRefused) {
  const auto group = alone();
  float value = 7;
  all_reduce(*group, {&value, 1, float32}, {.name = "sum"});
  EXPECT_EQ(value, 7);
  const Tensor flags = at::arange(4, at::device(at::kCUDA)).to(at::kBool);
  const Buffer buffer = on_gpu(flags);
  EXPECT_THROW(group->all_reduce({&buffer, 1}, {.name = "flags"}), InvalidArgumentError);
}

TEST(Nccl, AfterAnAbortEveryCallIsRefused) {
  const auto group = alone();
  group->abort(std::make_exception_ptr(DataLossError("record 7 is damaged")));
  const Tensor value = at::arange(4, at::device(at::kCUDA));
  const Buffer buffer = on_gpu(value);
  EXPECT_THROW(group->all_reduce({&buffer, 1}, {.name = "sum"}), Error);
}

TEST(Nccl, NeedsAGpu) {
  EXPECT_THROW(make_nccl_communicator(std::make_shared<SoleCommunicator>(0), {}, kPatience),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::collective
