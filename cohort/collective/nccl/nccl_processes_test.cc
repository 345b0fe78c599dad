// NCCL between the simulated GPUs of real processes: one of them is killed or leaves while the
// others wait for it.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cohort/cluster/tf_config.h"
#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/nccl/testing_gpu_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_directory_store.h"
#include "cohort/core/testing_folder.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/fake_nccl.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::collective {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

constexpr int kTasks = 2;

// Adds up until that fails; task 1 leaves after 5 calls, in the way that the second argument says.
// The first one is the store's folder.
std::string add_up(const Arguments& arguments) {
  const int rank = internal::parse_tf_config(std::getenv("TF_CONFIG")).task_index.value();
  GroupMember member{.rank = rank,
                     .store = std::make_shared<DirectoryStore>(arguments.at(0)),
                     .deadline = std::chrono::steady_clock::now() + seconds(40)};
  for (int i = 0; i < kTasks; ++i) member.tasks.push_back({"worker", i});
  const c10::Device gpu(testing::kSimulated, static_cast<c10::DeviceIndex>(rank));
  const auto group =
      make_nccl_communicator(make_shared_memory_communicator(member), {gpu}, seconds(30));
  try {
    for (int call = 0;; ++call) {
      if (call == 5 && rank == 1 && arguments.at(1) == "exit") ::_exit(0);
      if (call == 5 && rank == 1) return "left";
      const Tensor value = at::full({1000}, rank + 1.0f, at::device(gpu));
      all_reduce(*group, buffer_on_gpu(value), {.name = "sums", .timeout = seconds(30)});
      if (value.cpu().data_ptr<float>()[999] != 3) return "a wrong sum";
    }
  } catch (const Error& error) {
    return internal::str(code_name(error.code()), ": ", error.what());
  }
}

class NcclProcesses : public ::testing::Test {
 protected:
  NcclProcesses() {
    std::filesystem::create_directory(folder_ / "left");
    ::setenv("TMPDIR", (folder_ / "left").c_str(), 1);  // what killed ranks leave
    testing::use_fake_nccl();
  }
  ~NcclProcesses() override { ::unsetenv("TMPDIR"); }

  // What task 0 reports.
  std::string run(const std::string& how) {
    std::filesystem::create_directory(folder_ / "store");
    testing::MultiProcessRunner runner(
        testing::MultiProcessOptions{.jobs = {{"worker", kTasks}},
                                     .function = "add_up",
                                     .arguments = {folder_ / "store", how},
                                     .deadline = seconds(60)});
    runner.start();
    return runner.wait_all()[0].value;
  }

  const internal::TemporaryFolder folder_;
};

TEST_F(NcclProcesses, ALostTaskIsNamed) {
  EXPECT_THAT(run("exit"),
              AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("worker/task:1"), HasSubstr("was lost")));
}

TEST_F(NcclProcesses, ATaskThatLeavesIsNamed) {
  EXPECT_THAT(run("leave"),
              AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("worker/task:1"), HasSubstr("has left")));
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

int run(int argc, char** argv) {
  return testing::multi_process_main(argc, argv, {{"add_up", add_up}}, run_tests);
}

}  // namespace cohort::collective

int main(int argc, char** argv) { return cohort::collective::run(argc, argv); }
