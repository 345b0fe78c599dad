// Calls on simulated GPUs, and what goes wrong in them. The suite of testing_conformance.h runs
// over them, too (nccl_backend_test.cc).
#include "cohort/collective/nccl/nccl_communicator.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <numeric>

#include "cohort/collective/nccl/testing_gpu_communicator.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/collective/testing_conformance.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/fake_nccl.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NcclFault;

constexpr std::chrono::seconds kNcclPatience{30};

c10::Device gpu(int index) { return {testing::kSimulated, static_cast<c10::DeviceIndex>(index)}; }

// Tasks of one GPU each, connected by shared memory besides.
Communicators make_tasks(int size, int first_gpu = 0, int step = 1) {
  return make_group(size, 0, [&](const GroupMember& member) {
    return make_nccl_communicator(make_shared_memory_communicator(member),
                                  {gpu(first_gpu + step * member.rank)}, kNcclPatience);
  });
}

// The sum of ones over all tasks.
float sum_of_ones(Communicator& member, std::chrono::nanoseconds timeout = kNcclPatience) {
  const Tensor one = at::full({3}, 1.0f, at::device(gpu(member.rank())));
  all_reduce(member, buffer_on_gpu(one), {.name = "ones", .timeout = timeout});
  return one.cpu().data_ptr<float>()[2];
}

std::vector<float> values_of(const Tensor& gpu) {
  const Tensor host = gpu.cpu();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

TEST(NcclCommunicator, AddsBetweenTheGpusOfOneProcessWithoutAWait) {
  const auto group = make_nccl_communicator(std::make_shared<SoleCommunicator>(0),
                                            {gpu(0), gpu(1), gpu(2)}, kNcclPatience);
  std::vector<Tensor> values;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 3; ++i) {
    values.push_back(at::full({2}, i + 1.0f, at::device(gpu(i))));
    buffers.push_back(buffer_on_gpu(values.back()));
  }
  const testing::DeviceCounts before = testing::device_counts();
  for (int round = 0; round < 3; ++round) {
    const auto work = group->all_reduce(buffers, {.name = "sum"});
    for (const Buffer& buffer : buffers) work->order_after(buffer.stream);
  }
  const testing::DeviceCounts made = testing::device_counts() - before;
  EXPECT_EQ(made.host_waits + made.to_host + made.to_device, 0);
  for (const Tensor& value : values) EXPECT_THAT(values_of(value), ElementsAre(54, 54));
  group->broadcast({buffers.data(), 3}, 0, {.name = "hand out"})->wait(Deadline::max());
  EXPECT_THROW(group->all_reduce({buffers.data(), 2}, {.name = "two"}), InvalidArgumentError);
  group->all_reduce({buffers.data(), 1}, {.name = "the first alone"});
}

TEST(NcclCommunicator, TwoRanksOnOneGpuAreRefusedWithAdvice) {
  const auto errors = [] {
    try {
      make_tasks(2, 3, 0);
    } catch (...) {
      return message_of<FailedPreconditionError>(std::current_exception());
    }
    return std::string("no error");
  }();
  EXPECT_THAT(errors, AllOf(HasSubstr("two ranks on one GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(NcclCommunicator, WaitsForALateCall) {
  const Communicators members = make_tasks(2);
  const NcclFault late("COHORT_FAKE_NCCL_LATE", "ncclAllReduce=60");
  expect_none(run_tasks(members, [](Communicator& member) { EXPECT_EQ(sum_of_ones(member), 2); }));
}

TEST(NcclCommunicator, AFailureReachesAllTasksAndEndsTheGroup) {
  const Communicators members = make_tasks(2);
  {
    const NcclFault where("COHORT_FAKE_NCCL_RANK", "1");
    const NcclFault fault("COHORT_FAKE_NCCL_ERROR", "ncclAllReduce=3");
    for (const auto& error :
         run_tasks(members, [](Communicator& member) { sum_of_ones(member); })) {
      EXPECT_THAT(message_of<UnavailableError>(error),
                  HasSubstr("NCCL cannot all_reduce: internal error"));
    }
  }
  for (const auto& error : run_tasks(members, [](Communicator& member) { sum_of_ones(member); })) {
    EXPECT_THAT(message_of<UnavailableError>(error), HasSubstr("internal error"));
  }
}

TEST(NcclCommunicator, AnErrorOfTheNetworkEndsAWait) {
  const Communicators members = make_tasks(2);
  const NcclFault fault("COHORT_FAKE_NCCL_ERROR", "ncclCommGetAsyncError=6");
  for (const auto& error : run_tasks(members, [](Communicator& member) { sum_of_ones(member); })) {
    EXPECT_THAT(message_of<UnavailableError>(error), HasSubstr("remote process exited"));
  }
}

TEST(NcclCommunicator, ATaskThatDoesNotComeIsNamed) {
  const Communicators members = make_tasks(3);
  const auto errors = run_tasks(members, [](Communicator& member) {
    if (member.rank() != 1) sum_of_ones(member, milliseconds(50));
  });
  for (const size_t rank : {0, 2}) {
    EXPECT_THAT(message_of<DeadlineExceededError>(errors[rank]),
                AllOf(HasSubstr("all_reduce 'ones'"), HasSubstr(members[0]->task_name(1)),
                      HasSubstr("did not come")));
  }
}

TEST(NcclCommunicator, AHangWithAllTasksInTheCallIsCalledThat) {
  const Communicators members = make_tasks(2);
  const NcclFault fault("COHORT_FAKE_NCCL_LATE", "ncclAllReduce=-1");
  const auto errors =
      run_tasks(members, [](Communicator& member) { sum_of_ones(member, milliseconds(50)); });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<DeadlineExceededError>(error), HasSubstr("NCCL hangs"));
  }
}

TEST(NcclCommunicator, AnAbortEndsACallOfGpusAndSaysWhy) {
  const Communicators members = make_tasks(3);
  const auto errors = run_tasks(members, [](Communicator& member) {
    if (member.rank() != 1) return void(sum_of_ones(member));
    std::this_thread::sleep_for(milliseconds(30));
    member.abort(std::make_exception_ptr(ResourceExhaustedError("its disk is full")));
  });
  for (const size_t rank : {0, 2}) {
    EXPECT_THAT(message_of<ResourceExhaustedError>(errors[rank]),
                HasSubstr(members[0]->task_name(1) + " has given up: its disk is full"));
  }
}

// A thread may end the group in which another one of the same task waits.
TEST(NcclCommunicator, AnAbortOfTheTaskItselfEndsItsCall) {
  const Communicators members = make_tasks(2);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    members[0]->abort(std::make_exception_ptr(DataLossError("record 7 is damaged")));
  });
  const auto errors = run_tasks(members, [](Communicator& member) {
    if (member.rank() == 0) sum_of_ones(member);
  });
  other.join();
  EXPECT_THAT(message_of<DataLossError>(errors[0]), HasSubstr("record 7 is damaged"));
}

}  // namespace
}  // namespace cohort::collective
